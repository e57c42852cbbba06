/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ops_program.c - what `burn explain` is tried on: a few ops of which the answers are known.
 *
 * usage: ops_program [STATUS|crash|fork]; a matmul of a transposed view, a gelu, 7 adds. It ends
 * with STATUS, or by a signal, without shutting the library down. With `fork` a child adds, too.
 */
#include <burn/ops.h>
#include <burn/trace.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    burn_err err = BURN_ERR_INIT;
    burn_device *dev = burn_device_open(NULL, &err);
    if (dev == NULL) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    const float numbers[6] = {1, 2, 3, 4, 5, 6};
    burn_tensor *x = burn_tensor_from_data(dev, BURN_F32, 2, (const int64_t[]){2, 3}, numbers);
    burn_tag_begin("head");
    burn_tensor *y = burn_gelu(burn_matmul(burn_transpose(x, 0, 1), x), 0);
    burn_tag_end();
    for (int i = 0; i < 7; i++) {
        y = burn_add(y, y);
    }
    double total = burn_item(burn_sum(y, 0, NULL, 0), &err);
    if (argc > 1 && strcmp(argv[1], "fork") == 0) {
        pid_t child = fork();
        for (int i = 0; child == 0 && i < 5; i++) {
            y = burn_add(y, y);
        }
        if (child == 0) {
            _exit(burn_ok(y) ? 0 : 1);
        }
        (void)waitpid(child, NULL, 0);
    }
    printf("%.6g %s\n", total, err.text);
    (void)fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "crash") == 0) {
        (void)raise(SIGKILL);
    }
    return argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;
}
