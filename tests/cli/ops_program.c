/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ops_program.c - what `burn explain` is tried on: a few ops of which the answers are known.
 *
 * usage: ops_program [STATUS|crash|fork|loop]; a matmul of a transposed view, a gelu, 7 adds. It
 * ends with STATUS, or by a signal, without shutting the library down. With `fork` a child adds,
 * too; with `loop` there are 5 rounds of 3 calls and a read.
 */
#include <burn/ops.h>
#include <burn/trace.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static double go_round(burn_device *dev, int rounds)
{
    double total = 0.0;
    for (int k = 0; k < rounds; k++) {
        burn_scope_begin();
        burn_tensor *x = burn_tensor_from_data(dev, BURN_F32, 1, (const int64_t[]){3},
                                               (const float[]){1, -2, 3});
        burn_tensor *y = burn_relu(burn_mul(x, burn_scalar(2.0)));
        total += burn_item(burn_sum(y, 0, NULL, 0), NULL);
        burn_scope_end();
    }
    return total;
}

int main(int argc, char **argv)
{
    burn_err err = BURN_ERR_INIT;
    burn_device *dev = burn_device_open(NULL, &err);
    if (dev == NULL) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    if (argc > 1 && strcmp(argv[1], "loop") == 0) {
        printf("%.6g\n", go_round(dev, 5));
        return 0;
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
