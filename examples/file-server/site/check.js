// SPDX-License-Identifier: Apache-2.0
// Checks what a browser makes of the files, and writes the verdict into the page.

function expect(what, actual, wanted) {
    if (actual !== wanted)
        throw new Error(`${what}: ${actual} instead of ${wanted}`);
}

async function checkRange() {
    const part = await fetch("digits.txt", {headers: {Range: "bytes=2-4"}});

    expect("status of a range", part.status, 206);
    expect("range", await part.text(), "234");
    expect("Content-Range", part.headers.get("Content-Range"), "bytes 2-4/10");
    expect("status beyond the end",
        (await fetch("digits.txt", {headers: {Range: "bytes=10-"}})).status, 416);
}

async function checkWhole() {
    const whole = await fetch("digits.txt");
    const tag = whole.headers.get("ETag");
    const again = await fetch("digits.txt", {headers: {"If-None-Match": tag}, cache: "no-store"});

    expect("content", await whole.text(), "0123456789");
    expect("type", whole.headers.get("Content-Type"), "text/plain; charset=utf-8");
    expect("status of the same", again.status, 304);
    expect("status of nothing", (await fetch("missing")).status, 404);
}

async function checkCompressed() {
    const page = await fetch("long.txt");

    expect("length of what is compressed", (await page.text()).length, 100000);
}

async function check() {
    const image = document.getElementById("dot");

    expect("color", getComputedStyle(document.querySelector("h1")).color, "rgb(1, 2, 3)");
    expect("width of the image", image.naturalWidth, 17);
    await checkRange();
    await checkWhole();
    await checkCompressed();
    return "everything is right";
}

window.addEventListener("load", () => {
    const verdict = document.getElementById("verdict");

    check().then((text) => { verdict.textContent = text; },
        (error) => { verdict.textContent = error.message; });
});
