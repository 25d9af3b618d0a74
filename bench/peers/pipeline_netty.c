/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The competitor that is PipelineNetty.java: this process becomes a Java virtual machine, which
 * answers the lines itself.
 */
#include <unistd.h>

#include "support/bench.h"

int main(void)
{
    bench_pin(bench_cpu(1));
    execl(NETTY_JAVA, "java", "-Xms256m", "-Xmx1g", "-XX:+UseSerialGC", "-cp", NETTY_CLASSES,
          "PipelineNetty", (char *)NULL);
    bench_require(false, "starting java");
}
