/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * conformance.h - what the files of burn-conformance share.
 *
 * The tool walks the registry and tries every op with every dtype, sample and layout on one runner:
 * a device (through the public API), or `eval`, which runs definitions by themselves. It sees
 * public headers only. A case is (op, sample, dtypes); a check is one comparison of a case: forward
 * in one layout, repeat, gradient, decompose, error. One thread. Memory of a case lives in an arena
 * that is freed with it; a program that has no memory left ends with status 2. To add a check: a
 * file like forward.c, a line in main.c.
 */
#ifndef BURN_SDK_CONFORMANCE_CONFORMANCE_H
#define BURN_SDK_CONFORMANCE_CONFORMANCE_H

#include <burn/builder.h>
#include <burn/op_attrs.h>
#include <burn/op_def.h>
#include <burn/op_list.h>
#include <burn/registry.h>
#include <burn/tensor.h>
#include <burn_sdk/element.h>
#include <burn_sdk/loop.h>
#include <stdio.h>

#define CONF_MAX_IN 16
#define CONF_MAX_OUT 8
/* Updates that are put together. */
#define CONF_TOGETHER 12

typedef struct conf_report conf_report;

/* ---- value.c: memory and host values ------------------------------------------------------- */

typedef struct conf_arena {
    struct conf_block *blocks;
} conf_arena;

/* Zeroed memory until conf_arena_free; never NULL. */
void *conf_alloc(conf_arena *arena, uint64_t bytes);
void conf_arena_free(conf_arena *arena);

/* An operand on the host, in the form that `eval` reads; always rounded to its dtype. */
typedef burn_eval_operand conf_value;

/* Allocates the elements for value->meta. */
void conf_value_alloc(conf_arena *arena, conf_value *value);
/* How many bytes behind the elements of a value that was allocated so were written. */
#define CONF_GUARD 64
uint32_t conf_value_overrun(const conf_value *value);
/* Rounds or wraps all elements to the dtype. */
void conf_value_round(conf_value *value);
/* Element k as a double; and from one, by the rules of a cast. */
double conf_get(const conf_value *value, uint64_t k);
void conf_set(conf_value *value, uint64_t k, double number);
/* The elements as stored bytes, and back. */
unsigned char *conf_bytes(conf_arena *arena, const conf_value *value);
void conf_from_bytes(conf_value *value, const unsigned char *bytes);
/* Both absent, or the same dtype, number of elements and bytes. */
int conf_same_bits(conf_arena *arena, const conf_value *a, const conf_value *b);
/* Copies element j of `from` to element k of `to`; same class. */
void conf_move(conf_value *to, uint64_t k, const conf_value *from, uint64_t j);
/* An integer scalar's value into its meta, where shape rules look for it. */
void conf_tell_number(conf_value *value);
int64_t conf_count(const burn_meta *meta);
int conf_is_float(uint8_t dtype);
int conf_same_shape(const burn_meta *a, const burn_meta *b);
/* "f32[2,3]" */
const char *conf_meta_text(char *out, size_t size, const burn_meta *meta);

/* ---- fill.c -------------------------------------------------------------------------------- */

/* From CONF_LARGE elements on, numbers repeat after CONF_TILE of them: a prime. */
enum { CONF_LARGE = 32768, CONF_TILE = 4099 };

/* Fills a value (meta set, elements allocated) as a sample's operand says. */
void conf_fill(conf_value *value, const burn_sample_operand *how, uint64_t seed,
               uint64_t counter);
/* A random number in [0,1), the same for the same seed and counter. */
double conf_uniform(uint64_t seed, uint64_t counter);

/* ---- tolerance.c --------------------------------------------------------------------------- */

/* 1 when got and expected agree within tolerance * eps * max(1, |expected|) + slack. */
int conf_close(double got, double expected, double tolerance, uint8_t dtype, double slack);
/* Compares two values of one meta; writes what differs first into `text`. Zeros are equal. */
int conf_compare(const conf_value *got, const conf_value *expected, double tolerance,
                 char *text, size_t size);

/* ---- cases.c: from samples to operands ------------------------------------------------------ */

typedef struct conf_case {
    const burn_op_def *def;
    burn_sample sample;
    uint32_t sample_index;
    uint32_t variant; /* which dtypes */
    uint8_t dtype;    /* the one that the report names */
    uint8_t support;  /* BURN_SUPPORT_* */
    uint8_t layout;   /* CONF_*: of the inputs, wherever a check makes them */
    uint8_t zero;
    uint64_t seed;
    uint32_t n_in;
    uint32_t n_out;
    conf_value in[CONF_MAX_IN];
    conf_value out[CONF_MAX_OUT]; /* expected, rounded to the dtype */
    conf_arena *arena;
} conf_case;

/* Compares output j with what is expected, by `factor` times the sample's tolerance and as its op
 * is held to it. In tolerance.c */
int conf_compare_output(const conf_case *c, uint32_t j, const conf_value *got, double factor,
                        char *text, size_t size);

/* The same for results of large cases: where numbers are added up, errors are measured by the
 * largest of the results, be it 1000 or the mean of many numbers, near 0. */
int conf_compare_large(const conf_case *c, uint32_t j, const conf_value *got, double factor,
                       char *text, size_t size);

/* The role of input i and of output j: the last one serves all further ones of a variadic op. */
const burn_role *conf_role_in(const burn_op_def *def, uint32_t i);
const burn_role *conf_role_out(const burn_op_def *def, uint32_t j);
/* Where attribute a has its k-th size of the result (BURN_ATTR_DIM); 0: it has none. */
uint32_t conf_dim_attr(const burn_op_def *def, uint32_t a, uint32_t k);
/* How many variants of dtypes a sample has. */
uint32_t conf_variants(const burn_op_def *def, const burn_sample *sample);
/* Sets dtypes and label of variant `variant`; fills nothing. */
void conf_case_dtypes(conf_case *c, uint32_t variant);
/* Allocates and fills the inputs. */
void conf_case_inputs(conf_case *c);

/* ---- sizes.c -------------------------------------------------------------------------------- */

/* Of a case's `n` variants the one that most is tried with: f32, where the op has it. */
uint32_t conf_main_variant(const conf_case *c, uint32_t n);
/* The distinct sizes above 1 of the case's operands, and of attributes that are dims of the result,
 * at most BURN_MAX_RANK; how many. */
uint32_t conf_distinct_sizes(const conf_case *c, int64_t *out);
/* What the op's own estimate says of the case's work; 0 without one. Sets out: what infer says. */
int32_t conf_work(const conf_case *c, burn_meta *out, double *flops);
/* The first of the distinct sizes, or 0; each size `from` becomes `to`. */
int64_t conf_first_size(const conf_case *c);
void conf_resize(conf_case *c, int64_t from, int64_t to);
/* How large: elements of the largest operand, and the most work. */
typedef struct conf_extent {
    int64_t elements;
    double work;
} conf_extent;
/* Of how many sizes each by itself is made large. */
enum { CONF_FORMS = 4 };
/* The case with its size number `form`, or (behind the last one) all of them, made so large, or up
 * to 16 times less where that is too much work; sets the metas of the outputs. 0: there is none. */
int conf_enlarge(conf_case *to, const conf_case *c, uint32_t form, const conf_extent *most);

/* ---- evaluate.c: roles, infer, eval --------------------------------------------------------- */

/* Checks operands against the roles, infers, allocates outputs, evaluates, rounds them. */
int32_t conf_evaluate(conf_arena *arena, const burn_op_def *def, const void *attrs,
                      uint32_t attrs_size, const conf_value *in, uint32_t n_in, conf_value *out,
                      uint32_t n_out, burn_err *err);
/* The same without rounding the outputs: for differences. */
int32_t conf_evaluate_exact(conf_arena *arena, const burn_op_def *def, const void *attrs,
                            uint32_t attrs_size, const conf_value *in, uint32_t n_in,
                            conf_value *out, uint32_t n_out, burn_err *err);
/*
 * The metas of the outputs. An answer that no core would take (rank, sizes, dtype, kind) is
 * BURN_E_INTERNAL, a shape beyond all memory BURN_E_LIMIT; the text names op, output and answer.
 */
int32_t conf_infer(const burn_op_def *def, const void *attrs, uint32_t attrs_size,
                   const conf_value *in, uint32_t n_in, burn_meta *out, uint32_t n_out,
                   burn_err *err);
/* The definition of an id, or NULL. */
const burn_op_def *conf_find(uint64_t id);
/* The definition of that name, else one that says "(unknown op)": for reports. */
const burn_op_def *conf_named(const char *name);

/* ---- runners -------------------------------------------------------------------------------- */

/* Mixed: another layout for each operand. */
enum { CONF_CONTIGUOUS = 0, CONF_TRANSPOSED = 1, CONF_SLICED = 2, CONF_NEGATIVE = 3,
       CONF_MIXED = 4, CONF_STRIDE0 = 5, CONF_LAYOUTS = 6 };
extern const char *const conf_layout_names[CONF_LAYOUTS];

/* What runs ops. `builder` makes them; values live until `reset`. */
typedef struct conf_runner conf_runner;
struct conf_runner {
    const char *name;
    burn_builder builder;
    conf_arena arena;
    void *context;
    burn_err said; /* the first failure that a definition told the builder since the last reset */
    /* A value with these elements; immediates become scalars. */
    burn_value *(*make)(conf_runner *runner, const conf_value *value);
    /* Waits and copies meta and elements into `out`. */
    int32_t (*read)(conf_runner *runner, burn_value *value, conf_arena *arena, conf_value *out,
                    burn_err *err);
    /*
     * Gradients of sum(out[j] * cotangent[j]) by the inputs with wanted[i]; grads[i] keeps kind
     * BURN_ABSENT where nothing flows. BURN_E_END: this runner cannot differentiate the op.
     */
    int32_t (*gradient)(conf_runner *runner, const conf_case *c, const conf_value *cotangents,
                        const uint8_t *wanted, conf_value *grads, burn_err *err);
    /* Gradients of sum(g[i] * directions[i]), g being those of `gradient`. Optional. */
    int32_t (*second)(conf_runner *runner, const conf_case *c, const conf_value *cotangents,
                      const uint8_t *wanted, const conf_value *directions, conf_value *grads,
                      burn_err *err);
    /* The value, handed over to the next op that takes it; `twin` (may be NULL) gets another handle
     * of the same storage. Optional. */
    burn_value *(*move)(conf_runner *runner, burn_value *value, burn_value **twin);
    /* Runs an op that overwrites variables that many times; out[j] are their new values. */
    int32_t (*update)(conf_runner *runner, const conf_case *c, uint32_t times, conf_value *out,
                      burn_err *err);
    /*
     * The updates of CONF_TOGETHER cases in one go: out[k] are the new values of case k, codes[k]
     * says how reading them ended. The first operand of case `bad` that is no variable fails on the
     * way (CONF_TOGETHER: none does). BURN_E_END: the runner does not put them together, or cannot
     * make an operand fail. Optional.
     */
    int32_t (*update_together)(conf_runner *runner, const conf_case *cases, uint32_t bad,
                               conf_value (*out)[CONF_MAX_OUT], int32_t *codes,
                               uint32_t *out_launches, burn_err *err);
    /* Keeps the op as a step with the inputs of `kept`, runs it some times with those of `c`; `out`
     * is what the last run gave. Not for ops that overwrite variables. Optional. */
    int32_t (*replay)(conf_runner *runner, const conf_case *kept, const conf_case *c,
                      conf_value *out, burn_err *err);
    /* BURN_SUPPORT_*: how the runner serves the op for that dtype. */
    uint32_t (*supports)(conf_runner *runner, const burn_op_def *def, uint8_t dtype);
    void (*reset)(conf_runner *runner);
};

int32_t conf_eval_runner(conf_runner *out, burn_err *err);
int32_t conf_device_runner(const char *device, conf_runner *out, burn_err *err);

/* Runs the case's op on a runner, inputs in the case's layout; outputs are read into out. */
int32_t conf_run(conf_runner *runner, const conf_case *c, conf_value *out, burn_err *err);
/* 1 when some input of the case can have that layout; for MIXED, when two inputs then differ. */
int conf_layout_applies(const conf_case *c, uint32_t layout);
/* The layout's name, "" for a contiguous case: what a check says behind its name. */
const char *conf_layout_detail(const conf_case *c);
/* Inputs as they are in that layout: stride 0 repeats elements along the first axis. */
void conf_layout_values(conf_case *c, uint32_t layout);
/* A value as operand `i` has it in that layout. */
burn_value *conf_make_in(conf_runner *runner, const conf_value *value, uint32_t layout,
                         uint32_t i);

/* Sets wanted inputs and cotangents of outputs; 1 when there is something to differentiate. */
int conf_gradient_prepare(conf_case *c, uint8_t *wanted, conf_value *cotangents);

/* ---- crash.c: which case runs when the process dies ------------------------------------------ */

/* Installs handlers of the signals of a crash, unless somebody (a sanitizer) has some. */
void conf_crash_install(void);
/* Says what runs from now on; c NULL: nothing. */
void conf_crash_case(const conf_report *report, const conf_case *c, const char *check,
                     const char *detail);

/* ---- checks --------------------------------------------------------------------------------- */

/* Uses the case's def only. */
void conf_check_definition(conf_report *report, conf_case *c);
void conf_check_forward(conf_report *report, conf_runner *runner, conf_case *c);
void conf_check_repeat(conf_report *report, conf_runner *runner, conf_case *c);
void conf_check_replay(conf_report *report, conf_runner *runner, conf_case *c);
/* error.c */
void conf_check_error(conf_report *report, conf_runner *runner, conf_case *c);
void conf_check_gradient(conf_report *report, conf_runner *runner, conf_case *c);
void conf_check_second(conf_report *report, conf_runner *runner, conf_case *c);
void conf_check_decompose(conf_report *report, conf_runner *runner, conf_case *c);
void conf_check_same_operand(conf_report *report, conf_runner *runner, conf_case *c);
void conf_check_moved(conf_report *report, conf_runner *runner, conf_case *c);
void conf_check_lines(conf_report *report, conf_runner *runner, conf_case *c);
void conf_check_together(conf_report *report, conf_runner *runner, conf_case *c);
/* Breaks each rule of the roles once; needs inputs that are fine. Once per op. */
void conf_check_refusals(conf_report *report, conf_runner *runner, conf_case *c);
/* The same op at other sizes, and with special values. */
void conf_check_sweep(conf_report *report, conf_runner *runner, conf_case *c);
/* The same op at sizes that threads share, with `eval`. */
void conf_check_large(conf_report *report, conf_runner *runner, conf_case *c);
/* The first sample of an op that can succeed; UINT32_MAX when there is none. */
uint32_t conf_first_good_sample(const burn_op_def *def);
/* The one of them that says most: many operands with many dims, a gradient, not large. */
uint32_t conf_main_sample(const burn_op_def *def);

/* ---- bits.c, modes.c, claims.c: checks of a whole device ------------------------------------- */

/* Lines about the bits of a case's results: alone, in a chain, of its gradients, and, for one case
 * of each op, at sizes that are shared out. */
void conf_write_bits(FILE *file, conf_runner *runner, conf_case *c, int smoke);
/* The line behind all others: how many cases there were. */
void conf_end_bits(FILE *file, uint64_t n_cases);
/* Runs the program again in other modes and compares those lines. */
void conf_check_modes(conf_report *report, int argc, char **argv);
/* Every native dtype of an op must have been tried by a forward check (not in a smoke run, which
 * has one dtype only), and every row of it launched, but for those that say that they are off. */
void conf_check_claims_tried(conf_report *report, burn_device *device, const burn_op_def *def,
                             int smoke);
/* Row i of an op; 0 behind the last. */
int conf_row(burn_device *device, const burn_op_def *def, uint32_t i, burn_row_info *out);
/* Compares all claims with a stored list, and writes one; 0 when the file fails. */
int conf_check_claims(conf_report *report, burn_device *device, const char *path);
int conf_write_claims(burn_device *device, const char *path);

/* ---- linked.c ------------------------------------------------------------------------------- */

/* That the plugins of the device and the extension (or NULL) export their entry only. */
void conf_check_linked(conf_report *report, const char *device, const char *extension);

/* ---- report.c ------------------------------------------------------------------------------- */

enum { CONF_PASS = 0, CONF_FAIL = 1, CONF_SKIP = 2 };

struct conf_report {
    const char *device;
    const char *extension; /* NULL: none was loaded */
    const char *row;       /* that is preferred, or NULL */
    const char *claims;    /* the list that was compared with, or NULL */
    const char *op;        /* what was asked for: that one, or NULL */
    int64_t sample;        /* that one, or -1 */
    uint8_t dtype;         /* that one, or BURN_DTYPE_NONE */
    uint8_t zero[7];
    int smoke;
    int unguarded;
    uint64_t n_passed;
    uint64_t n_failed;
    uint64_t n_skipped;
    uint64_t n_ran;    /* results for which an op ran, views apart */
    uint64_t n_viewed; /* those of views, which need no kernel */
    uint64_t n_lacked; /* skipped, since the device lacks a kernel */
    char lacked[320];  /* the first of these */
    uint64_t seed;
    uint64_t digest; /* of the bits of all forward results */
    uint64_t n_cases; /* that can succeed, so that their bits can be compared */
    int verbose;
    char about[4][128]; /* conf_report_about: library, abi, plugin, isa; "" where not known */
    double begun;       /* seconds of a clock */
    struct conf_entry *entries; /* kept for the files */
    uint64_t n_entries;
    uint64_t room;
};

/*
 * A check that failed with a code. It counts as skipped when the device has no kernel for the op
 * and lacks an op that its decomposition needs.
 */
void conf_failed(conf_report *report, const conf_case *c, const char *check, const char *detail,
                 int32_t code, const char *text);
/* One result; `detail` is the layout of a forward check, "" elsewhere. */
void conf_result(conf_report *report, const conf_case *c, const char *check, const char *detail,
                 int outcome, const char *format, ...) __attribute__((format(printf, 6, 7)));
/* One that is about the device or the run as a whole, filed under CONF_DEVICE. */
#define CONF_DEVICE "(device)"
void conf_device_result(conf_report *report, const char *check, const char *detail, int outcome,
                        const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Did any op run, so that the run says something? And a failure that says why not. */
int conf_ran(const conf_report *report);
void conf_check_ran(conf_report *report);
/* The command that runs a check again, into `out`; sample CONF_NO_SAMPLE: the whole op. */
#define CONF_NO_SAMPLE UINT32_MAX
void conf_rerun_text(char *out, size_t size, const conf_report *report, const char *check,
                     const char *op, const char *dtype, uint32_t sample_index);
/* What the report says of the device's library, plugin and instructions. */
void conf_report_about(conf_report *report, burn_device *device);
/* 1 when a forward check of that op and dtype was executed. */
int conf_was_tried(const conf_report *report, const char *op, const char *dtype);
/* How many failures of each op and check were not printed, after the last of them. */
void conf_print_unsaid(const conf_report *report);
/* Mixes the bits of a result into the digest. */
void conf_digest(conf_report *report, conf_arena *arena, const conf_value *value);
int conf_write_json(const conf_report *report, const char *path);
int conf_write_junit(const conf_report *report, const char *path);
void conf_report_free(conf_report *report);

#endif /* BURN_SDK_CONFORMANCE_CONFORMANCE_H */
