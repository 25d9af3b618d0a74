/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tls/pki.h"

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#define DAY (24 * 60 * 60)

/* Who signs: a certificate and its key. NULL of both: oneself. */
struct signer {
    X509 *certificate;
    EVP_PKEY *key;
};

/* What a certificate is to be. */
struct plan {
    const char *name;       /* CN */
    const char *alt_names;  /* as OpenSSL writes them; NULL = none */
    const char *constraint; /* basic constraints */
    const char *usage;
    const char *purpose; /* extended usage; NULL = any */
    const char *feature; /* of TLS; NULL = none */
    long from_days, to_days;
};

#define LOCALHOST "DNS:localhost,IP:127.0.0.1,IP:::1,DNS:example.test"
#define LEAF .constraint = "CA:FALSE", .usage = "critical,digitalSignature"
#define SERVER LEAF, .purpose = "serverAuth", .from_days = -1, .to_days = 30
#define AUTHORITY                                                                               \
    .constraint = "critical,CA:TRUE", .usage = "critical,keyCertSign,cRLSign", .from_days = -1, \
    .to_days = 30

static struct {
    bool is_made;
    pid_t owner;
    struct pki pki;
    struct pki_leaf rsa;
    struct signer root, intermediate, strange;
} made;

static void must(bool held, const char *what)
{
    if (held)
        return;
    fprintf(stderr, "pki: cannot make %s\n", what);
    ERR_print_errors_fp(stderr);
    abort();
}

/* ---- certificates ---- */

static void extend(X509 *certificate, X509 *issuer, int nid, const char *value)
{
    X509_EXTENSION *extension;
    X509V3_CTX ctx;

    if (value == NULL)
        return;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, certificate, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    must(extension != NULL && X509_add_ext(certificate, extension, -1) == 1, value);
    X509_EXTENSION_free(extension);
}

static void name(X509 *certificate, const char *text)
{
    must(X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                    (const unsigned char *)text, -1, -1, 0) == 1,
         "a name");
}

static X509 *certify(const struct plan *plan, EVP_PKEY *key, struct signer by)
{
    static long serial = 0x1000;
    X509 *certificate = X509_new(), *issuer;

    must(certificate != NULL, "a certificate");
    issuer = by.certificate != NULL ? by.certificate : certificate;
    name(certificate, plan->name);
    must(X509_set_version(certificate, X509_VERSION_3) == 1 &&
             ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial) == 1 &&
             X509_gmtime_adj(X509_getm_notBefore(certificate), plan->from_days * DAY) != NULL &&
             X509_gmtime_adj(X509_getm_notAfter(certificate), plan->to_days * DAY) != NULL &&
             X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1 &&
             X509_set_pubkey(certificate, key) == 1,
         plan->name);
    extend(certificate, issuer, NID_subject_key_identifier, "hash");
    extend(certificate, issuer, NID_authority_key_identifier, "keyid");
    extend(certificate, issuer, NID_basic_constraints, plan->constraint);
    extend(certificate, issuer, NID_key_usage, plan->usage);
    extend(certificate, issuer, NID_ext_key_usage, plan->purpose);
    extend(certificate, issuer, NID_subject_alt_name, plan->alt_names);
    extend(certificate, issuer, NID_tlsfeature, plan->feature);
    must(X509_sign(certificate, by.key != NULL ? by.key : key, EVP_sha256()) > 0, "a signature");
    return certificate;
}

static EVP_PKEY *new_key(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");

    must(key != NULL, "a key");
    return key;
}

static struct signer authority(const char *text, struct signer by)
{
    struct plan plan = {.name = text, AUTHORITY};
    struct signer signer = {.key = new_key()};

    signer.certificate = certify(&plan, signer.key, by);
    return signer;
}

/* ---- PEM ---- */

/* What has been written, as text that is the caller's. */
static char *text_of(BIO *bio)
{
    char *bytes;
    long length = BIO_get_mem_data(bio, &bytes);
    char *text = malloc((size_t)length + 1); /* strndup, but strictly: they have no end */

    must(text != NULL, "a text");
    memcpy(text, bytes, (size_t)length);
    text[length] = '\0';
    BIO_free(bio);
    return text;
}

/* `next` is what stands between it and the authority; NULL = nothing. */
static char *certificate_pem(X509 *certificate, X509 *next)
{
    BIO *bio = BIO_new(BIO_s_mem());

    must(bio != NULL && PEM_write_bio_X509(bio, certificate) == 1 &&
             (next == NULL || PEM_write_bio_X509(bio, next) == 1),
         "a certificate's text");
    return text_of(bio);
}

static char *key_pem(EVP_PKEY *key, const char *passphrase)
{
    BIO *bio = BIO_new(BIO_s_mem());
    const EVP_CIPHER *cipher = passphrase != NULL ? EVP_aes_128_cbc() : NULL;
    int length = passphrase != NULL ? (int)strlen(passphrase) : 0;

    must(bio != NULL &&
             PEM_write_bio_PKCS8PrivateKey(bio, key, cipher, passphrase, length, NULL, NULL) == 1,
         "a key's text");
    return text_of(bio);
}

/* ---- files ---- */

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

/* Only in the process that created it, not in forked children. */
static void remove_folder(void)
{
    if (getpid() == made.owner)
        (void)nftw(made.pki.folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void make_folder(void)
{
    char path[] = "/tmp/weir-pki-XXXXXX";

    must(mkdtemp(path) != NULL, "a folder");
    made.pki.folder = strdup(path);
    made.owner = getpid();
    must(made.pki.folder != NULL && atexit(remove_folder) == 0, "a folder");
}

static const char *save(const char *noun, const char *ending, const char *text)
{
    char *path;
    FILE *file;

    must(asprintf(&path, "%s/%s.%s", made.pki.folder, noun, ending) > 0, "a path");
    file = fopen(path, "w");
    must(file != NULL && fchmod(fileno(file), 0600) == 0, path); /* keys are not for everybody */
    must(fputs(text, file) >= 0 && fclose(file) == 0, path);
    return path;
}

/* ---- leaves ---- */

/* Takes: key. */
static struct pki_leaf leaf_of(const struct plan *plan, EVP_PKEY *key, struct signer by,
                               const char *passphrase)
{
    X509 *certificate = certify(plan, key, by);
    X509 *next = by.certificate == made.intermediate.certificate ? by.certificate : NULL;
    struct pki_leaf leaf = {
        .certificate = certificate_pem(certificate, next),
        .key = key_pem(key, passphrase),
    };

    X509_free(certificate);
    EVP_PKEY_free(key);
    return leaf;
}

static void save_leaf(struct pki_leaf *leaf, const char *noun)
{
    leaf->certificate_file = save(noun, "pem", leaf->certificate);
    leaf->key_file = save(noun, "key", leaf->key);
}

static void make_authorities(void)
{
    struct signer itself = {0};

    made.root = authority("weir test authority", itself);
    made.intermediate = authority("weir test intermediate", made.root);
    made.pki.intermediate.certificate = certificate_pem(made.intermediate.certificate, NULL);
    made.pki.intermediate.key = key_pem(made.intermediate.key, NULL);
    save_leaf(&made.pki.intermediate, "intermediate");
    made.strange = authority("strange authority", itself);
    made.pki.ca = certificate_pem(made.root.certificate, NULL);
    made.pki.ca_file = save("ca", "pem", made.pki.ca);
    made.pki.strange_ca = certificate_pem(made.strange.certificate, NULL);
    made.pki.strange_ca_file = save("strange_ca", "pem", made.pki.strange_ca);
}

static const struct plan server_plan = {.name = "localhost", .alt_names = LOCALHOST, SERVER};

static void make_leaves(void)
{
    const struct plan other = {
        .name = "other.test", .alt_names = "DNS:other.test,DNS:*.wild.test", SERVER};
    const struct plan wrong = {.name = "wrong.test", .alt_names = "DNS:wrong.test", SERVER};
    const struct plan client = {
        .name = "client", LEAF, .purpose = "clientAuth", .from_days = -1, .to_days = 30};
    struct plan expired = server_plan, future = server_plan, stapled = server_plan;
    const struct signer itself = {0};

    expired.from_days = -2;
    expired.to_days = -1;
    future.from_days = 1;
    future.to_days = 2;
    stapled.feature = "status_request";
#define MAKE(noun, plan, by, passphrase)                             \
    do {                                                             \
        made.pki.noun = leaf_of(&(plan), new_key(), by, passphrase); \
        save_leaf(&made.pki.noun, #noun);                            \
    } while (0)
    MAKE(server, server_plan, made.intermediate, NULL);
    MAKE(renewed, server_plan, made.intermediate, NULL);
    MAKE(stapled, stapled, made.intermediate, NULL);
    MAKE(encrypted, server_plan, made.intermediate, PKI_PASSPHRASE);
    MAKE(other, other, made.intermediate, NULL);
    MAKE(wrong_host, wrong, made.intermediate, NULL);
    MAKE(expired, expired, made.intermediate, NULL);
    MAKE(future, future, made.intermediate, NULL);
    MAKE(self_signed, server_plan, itself, NULL);
    MAKE(stranger, server_plan, made.strange, NULL);
    MAKE(client, client, made.intermediate, NULL);
    MAKE(strange_client, client, made.strange, NULL);
#undef MAKE
}

/* As src/tls/openssl/session.c has it, but who comes first decides: if OpenSSL tore itself down at
 * exit, the thread of a loop that is just ending could not tidy up after itself, and would seem to
 * leak.
 */
static void leave_openssl_at_exit(void)
{
    must(OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL) == 1, "a beginning");
}

const struct pki *pki(void)
{
    if (!made.is_made) {
        made.is_made = true;
        leave_openssl_at_exit();
        make_folder();
        make_authorities();
        make_leaves();
    }
    return &made.pki;
}

const struct pki_leaf *pki_rsa(void)
{
    EVP_PKEY *key;

    (void)pki();
    if (made.rsa.key == NULL) {
        key = EVP_RSA_gen(2048);
        must(key != NULL, "an RSA key");
        made.rsa = leaf_of(&server_plan, key, made.intermediate, NULL);
        save_leaf(&made.rsa, "rsa");
    }
    return &made.rsa;
}
