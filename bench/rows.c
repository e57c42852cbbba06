/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * rows.c - the table of rows.
 *
 * Sizes that depend on the machine (caches) are filled in when the rows are written. Rows whose
 * cases release their results unread have BURN_WINDOW=1: with another window nothing of them would
 * run. Steps and chains run as programs do ("auto"). To add a row:
 * a line here, a line in README.md; if its case is new, see cases.h.
 */
#include "rows.h"

#include <math.h>
#include <string.h>

/* Work of the training steps, derived in README.md. */
#define MLP_FLOPS   (2.0 * 64 * (2 * 784 * 128 + 3 * 128 * 10))
#define MLP_BYTES   (32.0 * 101770 + 64.0 * 4 * (2 * 784 + 4 * (128 + 128 + 10)))
#define LENET_FLOPS (64.0 * (2 * 235200 + 3 * 480000 + 3 * 117840))
#define LENET_BYTES (32.0 * 61706 + 64.0 * 4 * (2 * 784 + 4 * 14602))
#define BLOCK_FLOPS (1024.0 * 2 * 3 * 786432 + 3 * 67108864.0)
#define BLOCK_BYTES (40.0 * 789760 + 1024.0 * 4 * 4 * 4864)

/* clang-format off */
#define ADD(name, case_name, arg, per, window) \
    {name, case_name, NULL, arg, per, 0, 0, window, 1, BENCH_NS, BENCH_TORCH, BENCH_NO_LIMIT, \
     0, 0, NULL, NULL}
#define SGEMM(name, n, threads) \
    {name, "sgemm", NULL, n, 1, 2.0 * n * n * n, 0, "1", threads, BENCH_GFLOPS, BENCH_TORCH, \
     BENCH_LIMIT_PEAK, 0, 0, NULL, NULL}
#define SMALL(name, n) \
    {name, "sgemm", NULL, n, 1, 2.0 * n * n * n, 0, "1", 1, BENCH_GFLOPS, BENCH_OPENBLAS, \
     BENCH_LIMIT_PEAK, 0, 0, NULL, NULL}
/* 64 products in one call (bench_ops). */
#define SMALL_KERNEL(name, n) \
    {name, "ext_product", NULL, n, 64, 128.0 * n * n * n, 0, "1", 1, BENCH_GFLOPS, \
     BENCH_OPENBLAS, BENCH_LIMIT_PEAK, 0, 0, NULL, NULL}
#define MEM(name, case_name, peer, traffic, level, threads) \
    {"mem." name, case_name, peer, 0, 1, 0, 0, "1", threads, BENCH_GBS, BENCH_TORCH, \
     BENCH_LIMIT_BANDWIDTH, traffic, level, NULL, NULL}
#define MEM_LEVELS(name, case_name, peer, traffic) \
    MEM(name ".l2", case_name, peer, traffic, BENCH_L2, 0), \
    MEM(name ".l3", case_name, peer, traffic, BENCH_L3, 0), \
    MEM(name ".dram", case_name, peer, traffic, BENCH_DRAM, 0), \
    MEM(name ".l2.1t", case_name, peer, traffic, BENCH_L2, 1), \
    MEM(name ".l3.1t", case_name, peer, traffic, BENCH_L3, 1), \
    MEM(name ".dram.1t", case_name, peer, traffic, BENCH_DRAM, 1)
#define MEM_DRAM(name, case_name, peer, traffic) \
    MEM(name ".dram", case_name, peer, traffic, BENCH_DRAM, 0), \
    MEM(name ".dram.1t", case_name, peer, traffic, BENCH_DRAM, 1)
#define MATH(name) \
    {"math." name, name, NULL, 4096, 4096, 0, 0, "1", 1, BENCH_NS, BENCH_SLEEF, BENCH_NO_LIMIT, \
     0, 0, NULL, NULL}
#define START(name, peer, part) \
    {"start." name, NULL, NULL, 0, 1, 0, 0, NULL, 0, BENCH_MS, peer, BENCH_NO_LIMIT, 0, 0, NULL, \
     part}
#define STEP(name, case_name, batch, flops, bytes, threads, peer) \
    {name, case_name, NULL, batch, 1, flops, bytes, "auto", threads, BENCH_MS, peer, \
     BENCH_LIMIT_FLOOR, 0, 0, NULL, NULL}
#define RECOMPUTE(name, peer) \
    {"recompute." name, "recompute_" name, "recompute_none", 8, 1, 0, 0, "auto", 0, BENCH_MS, \
     peer, BENCH_NO_LIMIT, 0, 0, NULL, NULL}, \
    {"recompute." name ".peak", NULL, NULL, 0, 1, 0, 0, NULL, 0, BENCH_MIB, BENCH_NO_PEER, \
     BENCH_NO_LIMIT, 0, 0, NULL, "--peak=recompute_" name}
#define EXT_CALL(name, case_name, peer, n) \
    {name, case_name, peer, n, 1, 0, 0, "1", 1, BENCH_NS, BENCH_OWN, BENCH_NO_LIMIT, 0, 0, NULL, \
     NULL}
#define TUNED(name, case_name, peer, n, threads) \
    {"tuned." name, case_name, peer, n, 1, 2.0 * n * n * n, 0, "1", threads, BENCH_GFLOPS, \
     BENCH_OWN, BENCH_NO_LIMIT, 0, 0, NULL, NULL}
#define FUSED(name, case_name, n, threads) \
    {"fused." name, case_name, case_name "_parts", n, 1, 0, 0, "1", threads, BENCH_MS, BENCH_OWN, \
     BENCH_NO_LIMIT, 0, 0, NULL, NULL}
/* A step in other words (eager, kept) beside `peer_case` of another process or of a peer. */
#define STEP_AS(step, step_case, other, batch, set_window, peer_name, work) \
    {.name = step, .case_name = step_case, .peer_case = other, .arg = batch, .per = 1, \
     .flops = work##_FLOPS, .bytes = work##_BYTES, .window = set_window, .unit = BENCH_MS, \
     .peer = peer_name, .limit = BENCH_LIMIT_FLOOR, .peer_window = "auto"}
#define STEP_WAYS(net, batch, work) \
    STEP_AS("step." net ".eager", "step_" net, NULL, batch, "1", BENCH_OWN, work), \
    STEP_AS("replay." net, "replay_" net, "step_" net, batch, "auto", BENCH_OWN, work), \
    STEP_AS("replay." net ".torch", "replay_" net, "step_" net, batch, "auto", BENCH_TORCH, work), \
    STEP_AS("replay." net ".compiled", "replay_" net, "step_" net, batch, "auto", BENCH_COMPILED, \
            work)
/* Chains; where bandwidth is the limit, `words` f32 must move per element. */
#define CHAIN(row, chain_case, other, n, parts, set_window, set_threads, peer_name) \
    {.name = row, .case_name = chain_case, .peer_case = other, .arg = n, .per = parts, \
     .window = set_window, .threads = set_threads, .unit = BENCH_NS, .peer = peer_name, \
     .peer_window = "auto"}
#define BOUND(row, chain_case, n, parts, kind, words, moves, set_window, set_threads, peer_name) \
    {.name = row, .case_name = chain_case, .arg = n, .per = parts, .bytes = 4.0 * (words) * (n), \
     .window = set_window, .threads = set_threads, .unit = kind, .peer = peer_name, \
     .limit = BENCH_LIMIT_BANDWIDTH, .traffic = moves, .peer_window = "auto"}
#define CHAIN8(row, n, set_window, set_threads, peer_name) \
    BOUND("chain8." row, "chain8", n, 8, BENCH_NS, 3, BENCH_READ_READ_WRITE, set_window, \
          set_threads, peer_name)
#define LINES(row, lines_case, set_window, set_threads, peer_name) \
    BOUND(row, lines_case, 4096 * 1024, 1, BENCH_MS, 2, BENCH_READ_WRITE, set_window, set_threads, \
          peer_name)
#define PASS_WAYS(row, pass_case) \
    BOUND(row, pass_case, 4096 * 1024, 1, BENCH_MS, 3, BENCH_READ_READ_WRITE, "auto", 0, \
          BENCH_TORCH), \
    BOUND(row ".1t", pass_case, 4096 * 1024, 1, BENCH_MS, 3, BENCH_READ_READ_WRITE, "auto", 1, \
          BENCH_TORCH), \
    BOUND(row ".eager", pass_case, 4096 * 1024, 1, BENCH_MS, 3, BENCH_READ_READ_WRITE, "1", 0, \
          BENCH_OWN)
#define LINES_WAYS(row, lines_case) \
    LINES(row, lines_case, "auto", 0, BENCH_TORCH), \
    LINES(row ".1t", lines_case, "auto", 1, BENCH_TORCH), \
    LINES(row ".compiled", lines_case, "auto", 0, BENCH_COMPILED), \
    LINES(row ".compiled.1t", lines_case, "auto", 1, BENCH_COMPILED), \
    LINES(row ".eager", lines_case, "1", 0, BENCH_OWN)
#define ADAMW(row, n, kind, set_window, set_threads, peer_name) \
    BOUND("adamw." row, "adamw", n, 1, kind, 7, BENCH_READ_WRITE, set_window, set_threads, \
          peer_name)
#define ADAMW_WAYS(row, n, kind) \
    ADAMW(row, n, kind, "auto", 0, BENCH_TORCH), \
    ADAMW(row ".1t", n, kind, "auto", 1, BENCH_TORCH), \
    ADAMW(row ".eager", n, kind, "1", 0, BENCH_OWN)

static const struct bench_row ROWS[] = {
    ADD("add.1.eager", "add", 1, 1, "1"),
    ADD("add.64.eager", "add", 64, 1, "1"),
    ADD("add.64.tape", "add_tape", 64, 1, "1"),
    ADD("add.64.tape100", "add_tape100", 64, 100, "1"),
    ADD("add.64.window", "add_chain64", 64, 64, "64"),
    EXT_CALL("ext.call.64", "ext_call", "add", 64),
    START("first_result", BENCH_TORCH, "--first-result"),
    START("list10", BENCH_NO_PEER, "--list10"),
    START("load_flex", BENCH_NO_PEER, "--load-flex"),
    SGEMM("sgemm.256.1t", 256, 1),
    SGEMM("sgemm.512.1t", 512, 1),
    SGEMM("sgemm.1024.1t", 1024, 1),
    SGEMM("sgemm.2048.1t", 2048, 1),
    SGEMM("sgemm.4096.1t", 4096, 1),
    SGEMM("sgemm.256.2t", 256, 2),
    SGEMM("sgemm.512.2t", 512, 2),
    SGEMM("sgemm.1024.2t", 1024, 2),
    SGEMM("sgemm.2048.2t", 2048, 2),
    SGEMM("sgemm.4096.2t", 4096, 2),
    SMALL("sgemm.small.16", 16),
    SMALL("sgemm.small.32", 32),
    SMALL("sgemm.small.48", 48),
    SMALL("sgemm.small.64", 64),
    SGEMM("sgemm.small.16.torch", 16, 1),
    SGEMM("sgemm.small.32.torch", 32, 1),
    SGEMM("sgemm.small.48.torch", 48, 1),
    SGEMM("sgemm.small.64.torch", 64, 1),
    SMALL_KERNEL("sgemm.small.16.kernel", 16),
    SMALL_KERNEL("sgemm.small.32.kernel", 32),
    SMALL_KERNEL("sgemm.small.48.kernel", 48),
    SMALL_KERNEL("sgemm.small.64.kernel", 64),
    MEM_LEVELS("add", "add", "add_out", BENCH_READ_READ_WRITE),
    MEM_LEVELS("mul", "mul", NULL, BENCH_READ_READ_WRITE),
    MEM_LEVELS("relu", "relu", NULL, BENCH_READ_WRITE),
    MEM_LEVELS("copy", "copy", NULL, BENCH_READ_WRITE),
    MEM_LEVELS("sum", "sum", NULL, BENCH_READ),
    MEM_DRAM("sum_rows", "sum_rows", NULL, BENCH_READ),
    MEM_DRAM("max_rows", "max_rows", NULL, BENCH_READ),
    MEM_DRAM("sum_columns", "sum_columns", NULL, BENCH_READ),
    MEM_DRAM("transpose", "transpose", NULL, BENCH_READ_WRITE),
    MEM_DRAM("softmax", "softmax", NULL, BENCH_READ_WRITE),
    MEM_DRAM("layer_norm", "layer_norm", NULL, BENCH_READ_WRITE),
    MEM_DRAM("exp", "exp", NULL, BENCH_READ_WRITE),
    MEM_DRAM("tanh", "tanh", NULL, BENCH_READ_WRITE),
    MATH("exp"),
    MATH("log"),
    MATH("tanh"),
    MATH("erf"),
    MATH("sin"),
    TUNED("dgemm.64", "tuned_dgemm", "dgemm", 64, 1),
    TUNED("dgemm.512", "tuned_dgemm", "dgemm", 512, 0),
    FUSED("matmul_bias_relu.512", "fused_matmul_relu", 512, 0),
    FUSED("matmul_bias_gelu.512", "fused_matmul_gelu", 512, 0),
    FUSED("add_layer_norm.1m", "fused_add_norm", 1 << 20, 0),
    FUSED("add_layer_norm.16m", "fused_add_norm", 1 << 24, 0),
    FUSED("swiglu.1m", "fused_swiglu", 1 << 20, 0),
    FUSED("swiglu.16m", "fused_swiglu", 1 << 24, 0),
    FUSED("lion_step.1m", "fused_lion", 1 << 20, 0),
    FUSED("lion_step.16m", "fused_lion", 1 << 24, 0),
    CHAIN("window.known", "known", "add_chain64", 1, 64, "auto", 1, BENCH_TORCH),
    CHAIN("chain8.1k", "chain8", NULL, 1 << 10, 8, "auto", 1, BENCH_TORCH),
    CHAIN("chain8.1k.compiled", "chain8", NULL, 1 << 10, 8, "auto", 1, BENCH_COMPILED),
    CHAIN("chain8.1k.replay", "chain8_replay", "chain8", 1 << 10, 8, "auto", 1, BENCH_OWN),
    CHAIN("chain8.1k.eager", "chain8", NULL, 1 << 10, 8, "1", 1, BENCH_OWN),
    CHAIN8("64k", 1 << 16, "auto", 0, BENCH_TORCH),
    CHAIN8("64k.1t", 1 << 16, "auto", 1, BENCH_TORCH),
    CHAIN8("64k.compiled", 1 << 16, "auto", 0, BENCH_COMPILED),
    CHAIN8("64k.compiled.1t", 1 << 16, "auto", 1, BENCH_COMPILED),
    CHAIN8("64k.eager", 1 << 16, "1", 0, BENCH_OWN),
    CHAIN8("4m", 1 << 22, "auto", 0, BENCH_TORCH),
    CHAIN8("4m.1t", 1 << 22, "auto", 1, BENCH_TORCH),
    CHAIN8("4m.compiled", 1 << 22, "auto", 0, BENCH_COMPILED),
    CHAIN8("4m.compiled.1t", 1 << 22, "auto", 1, BENCH_COMPILED),
    CHAIN8("4m.eager", 1 << 22, "1", 0, BENCH_OWN),
    PASS_WAYS("bias_backward", "bias_backward"),
    PASS_WAYS("turned", "turned"),
    LINES_WAYS("softmax.decomposed", "softmax_parts"),
    LINES_WAYS("layernorm.decomposed", "layer_norm_parts"),
    PASS_WAYS("softmax.masked", "masked_softmax"),
    PASS_WAYS("layernorm.residual", "residual_norm"),
    ADAMW_WAYS("25m", 25000000, BENCH_MS),
    ADAMW_WAYS("many", 100000, BENCH_NS),
    RECOMPUTE("none", BENCH_NO_PEER),
    RECOMPUTE("balanced", BENCH_OWN),
    RECOMPUTE("scope", BENCH_OWN),
    STEP("step.mlp", "step_mlp", 64, MLP_FLOPS, MLP_BYTES, 0, BENCH_TORCH),
    STEP("step.lenet", "step_lenet", 64, LENET_FLOPS, LENET_BYTES, 0, BENCH_TORCH),
    STEP("step.block", "step_block", 8, BLOCK_FLOPS, BLOCK_BYTES, 0, BENCH_TORCH),
    STEP_WAYS("mlp", 64, MLP),
    STEP_WAYS("lenet", 64, LENET),
    STEP_WAYS("block", 8, BLOCK),
    STEP("step.mlp.1t", "step_mlp", 64, MLP_FLOPS, MLP_BYTES, 1, BENCH_TORCH),
    STEP("step.lenet.1t", "step_lenet", 64, LENET_FLOPS, LENET_BYTES, 1, BENCH_TORCH),
    STEP("step.block.1t", "step_block", 8, BLOCK_FLOPS, BLOCK_BYTES, 1, BENCH_TORCH),
    STEP("step.mlp.compiled", "step_mlp", 64, MLP_FLOPS, MLP_BYTES, 0, BENCH_COMPILED),
    STEP("step.lenet.compiled", "step_lenet", 64, LENET_FLOPS, LENET_BYTES, 0, BENCH_COMPILED),
    STEP("step.block.compiled", "step_block", 8, BLOCK_FLOPS, BLOCK_BYTES, 0, BENCH_COMPILED),
    STEP("step.mlp.compiled.1t", "step_mlp", 64, MLP_FLOPS, MLP_BYTES, 1, BENCH_COMPILED),
    STEP("step.lenet.compiled.1t", "step_lenet", 64, LENET_FLOPS, LENET_BYTES, 1, BENCH_COMPILED),
    STEP("step.block.compiled.1t", "step_block", 8, BLOCK_FLOPS, BLOCK_BYTES, 1, BENCH_COMPILED),
};
/* clang-format on */

enum { N_ROWS = sizeof(ROWS) / sizeof(ROWS[0]) };
_Static_assert((int)N_ROWS <= (int)BENCH_MAX_ROWS, "bench_rows writes into BENCH_MAX_ROWS rows");

/* As many elements as move the bytes that fit the level. Level 2 belongs to a core, so one thread
 * gets one core's share. */
static int64_t elements_of(const struct bench_row *row, const struct bench_machine *machine)
{
    int threads = row->threads > 0 ? row->threads : machine->cpus;
    int64_t of_add = row->level == BENCH_L2   ? bench_elements_l2(machine, threads)
                     : row->level == BENCH_L3 ? bench_elements_l3(machine)
                                              : bench_elements_dram(machine);
    double bytes = bench_traffic_bytes(BENCH_READ_READ_WRITE) * (double)of_add;
    return (int64_t)(bytes / bench_traffic_bytes(row->traffic)) / 1024 * 1024;
}

/* A square has fewer elements than asked for: its bytes are those that it has. */
static double bytes_of(const struct bench_row *row)
{
    double elements = (double)row->arg;
    if (strcmp(row->case_name, "transpose") == 0) {
        double side = floor(sqrt(elements) / 64) * 64;
        elements = side * side;
    }
    return bench_traffic_bytes(row->traffic) * elements;
}

int bench_rows(const struct bench_machine *machine, struct bench_row *out)
{
    for (int i = 0; i < N_ROWS; i++) {
        out[i] = ROWS[i];
        if (out[i].limit == BENCH_LIMIT_BANDWIDTH && out[i].arg == 0) {
            out[i].arg = elements_of(&out[i], machine);
            out[i].bytes = bytes_of(&out[i]);
        }
    }
    return N_ROWS;
}

const char *bench_unit_name(enum bench_unit unit)
{
    static const char *const names[] = {"ns", "ms", "GFLOP/s", "GB/s", "MiB"};
    return names[unit];
}

const char *bench_peer_name(enum bench_peer peer)
{
    static const char *const names[] = {"", "torch", "torch.compile", "sleef", "burn", "openblas"};
    return names[peer];
}

double bench_row_value(const struct bench_row *row, double seconds)
{
    if (isnan(seconds)) {
        return seconds;
    }
    switch (row->unit) {
    case BENCH_NS:
        return seconds / row->per * 1e9;
    case BENCH_MS:
        return seconds / row->per * 1e3;
    case BENCH_GFLOPS:
        return row->flops / seconds * 1e-9;
    case BENCH_GBS:
        return row->bytes / seconds * 1e-9;
    case BENCH_MIB:
        return seconds / (1024.0 * 1024.0); /* of bytes */
    }
    return (double)NAN;
}
