/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * op_def.h - the definition of an op: everything the library knows about it, in one const struct.
 *
 * Core ops and the ops of extensions are the same struct. A definition says what an op means
 * (`eval`), which shapes and dtypes it takes (`roles`, `infer`), how it is differentiated (`vjp`),
 * what it is made of (`decompose`) and how it is tried (`samples`). The host copies definitions
 * into its own full-size structs, stepping arrays by the declared strides.
 */
#ifndef BURN_OP_DEF_H
#define BURN_OP_DEF_H

#include <burn/base.h>
#include <burn/builder.h>
#include <burn/dtype.h>
#include <burn/status.h>

BURN_BEGIN_DECLS

/* burn_role.flags */
enum {
    BURN_ROLE_OPTIONAL = 1,
    BURN_ROLE_VARIADIC = 2,  /* the last input or output role; one or more operands */
    BURN_ROLE_STATE = 4,     /* a variable that the op overwrites */
    BURN_ROLE_IMMEDIATE = 8, /* a scalar by value is accepted */
    BURN_ROLE_ONLY_IMMEDIATE = 16,
    BURN_ROLE_NO_GRAD = 32, /* this input or output never carries a gradient */
    BURN_ROLE_LINE = 64     /* of BURN_FUSE_LINES: an input that is one line, the same for all */
};

/*
 * One input or output. `same_dtype_as` is 1 + the index of the operand whose dtype it shares; an
 * immediate is converted to that operand's dtype, else to the only dtype of the set.
 */
typedef struct burn_role {
    const char *name;
    uint32_t flags;
    uint8_t same_dtype_as;
    uint8_t zero[3];
    uint64_t dtypes[4];
} burn_role;

/* Types of attribute fields. A list is int64_t[8], its length another field named n_<name>. */
enum { BURN_ATTR_I64 = 1, BURN_ATTR_U32 = 2, BURN_ATTR_F64 = 3, BURN_ATTR_DTYPE = 4,
       BURN_ATTR_I64_LIST = 5, BURN_ATTR_BOOL = 6 };
/* KEY selects code; DIM is an output size that dynamic shapes may abstract. */
enum { BURN_ATTR_KEY = 1, BURN_ATTR_DIM = 2 };

typedef struct burn_attr {
    const char *name;
    const char *doc;
    uint16_t type;
    uint16_t offset;
    uint16_t size;
    uint16_t since_revision;
    uint32_t klass;
    uint32_t zero;
} burn_attr;

/* Every attribute struct starts with this head; its padding is zero. */
typedef struct burn_attrs_head {
    uint32_t size;
    uint32_t revision;
} burn_attrs_head;

/* {in, out}: the output shares (MUST) or may share (MAY) the input's storage. */
enum { BURN_ALIAS_MAY = 1, BURN_ALIAS_MUST = 2 };
typedef struct burn_alias {
    uint16_t in;
    uint16_t out;
    uint32_t kind;
} burn_alias;

enum { BURN_EFFECT_PURE = 0, BURN_EFFECT_RANDOM = 1, BURN_EFFECT_STATE = 2, BURN_EFFECT_ORDERED = 3,
       BURN_EFFECT_HOST = 4 };

/* How an op takes part in fusion and how the core treats its operands. */
enum {
    BURN_FUSE_NONE = 0,
    BURN_FUSE_POINTWISE = 1, /* the core infers, broadcasts, coalesces and sums gradients back */
    /* Along the axes of its attributes (burn_attrs_axes); or, with an attribute `reduction` (U32,
     * BURN_REDUCTION_*) and operands of one shape, to one number, where it is not NONE: a loss. */
    BURN_FUSE_REDUCE = 2,
    BURN_FUSE_VIEW = 3, /* has `view`; never launches */
    BURN_FUSE_EPILOGUE_HOST = 4,
    /* Element i follows from i, from element i of the operands that are tensors, all of the
     * result's shape, and from scalars by value: random numbers. Sizes stand in attributes of class
     * DIM only. */
    BURN_FUSE_GENERATE = 5,
    /* Each line of the result, a run along the last axes, follows from the same line of the
     * operands and from those of role BURN_ROLE_LINE: softmax, layer_norm. All others have the
     * result's shape. Attribute `axis` (I64) is the last axis, or `n_axes` (U32) says how many of
     * the last ones are a line; with another axis a call is no walk over lines. */
    BURN_FUSE_LINES = 6
};

/* burn_op_def.flags */
enum {
    BURN_OP_MINIMAL = 1,   /* a backend with all minimal ops trains an MLP and a CNN */
    BURN_OP_PRIMITIVE = 2, /* has no decomposition, on purpose */
    BURN_OP_INTERNAL = 4,  /* made by gradients only, not called by applications */
    BURN_OP_LIGHT = 8 /* one pass over memory, as pointwise ops: BURN_RECOMPUTE_BALANCED runs it
                         again rather than keep what it gave */
};

/*
 * Shape and dtype rule. Input metas are checked against the roles beforehand; output metas arrive
 * with kind BURN_TENSOR and the dtype that the role gives (or none). Errors name values and remedy.
 * Pointwise ops may leave `infer` NULL.
 */
typedef struct burn_infer {
    uint32_t struct_size;
    uint32_t n_in;
    uint32_t n_out;
    uint32_t attrs_size;
    const burn_meta *const *in;
    burn_meta *out;
    const void *attrs;
    burn_err *err;
} burn_infer;

/* A view: how the output lies in the input's storage. Offsets and strides count elements. */
typedef struct burn_view {
    uint32_t struct_size;
    uint32_t n_immediates;
    const burn_meta *in;
    const int64_t *in_strides;
    int64_t in_offset;
    const int64_t *immediates; /* input 1, 2, ... as integers */
    const void *attrs;
    const burn_meta *out; /* as inferred */
    int64_t *out_strides;
    int64_t *out_offset;
    burn_err *err;
} burn_view;

/*
 * Gradient of the inputs. `grad_out[j]` is NULL where nothing flows; `in[i]` and `out[j]` are NULL
 * unless some wanted gradient saves them. The function sets `grad_in[i]` for each i with
 * `wanted[i]`; NULL means zero. A gradient may have any shape that its input broadcasts to: the
 * core sums it back for pointwise ops.
 */
typedef struct burn_vjp {
    uint32_t struct_size;
    uint32_t n_in;
    uint32_t n_out;
    uint32_t attrs_size;
    burn_value *const *in;
    burn_value *const *out;
    burn_value *const *grad_out;
    const uint8_t *wanted;
    const burn_meta *in_meta; /* of every input, saved or not */
    burn_value **grad_in;
    const void *attrs;
} burn_vjp;

/* Decomposition: sets out[j]. An input may be passed through as an output. */
typedef struct burn_expand {
    uint32_t struct_size;
    uint32_t n_in;
    uint32_t n_out;
    uint32_t attrs_size;
    burn_value *const *in;
    const burn_meta *in_meta;
    burn_value **out;
    const void *attrs;
} burn_expand;

/*
 * The meaning, slow and obvious. Operands are dense and row-major; floats are double, signed
 * integers and bools int64_t, unsigned integers uint64_t. `n` is the number of elements.
 */
typedef struct burn_eval_operand {
    burn_meta meta;
    uint64_t n;
    double *f;
    int64_t *i;
    uint64_t *u;
} burn_eval_operand;

typedef struct burn_eval {
    uint32_t struct_size;
    uint32_t n_in;
    uint32_t n_out;
    uint32_t attrs_size;
    const burn_eval_operand *in;
    burn_eval_operand *out;
    const void *attrs;
    burn_err *err;
} burn_eval;

/* What a sample's operand is filled with. */
enum {
    BURN_FILL_NORMAL = 0,   /* about N(0,1); integers -9..9 */
    BURN_FILL_UNIFORM = 1,  /* lo..hi */
    BURN_FILL_INDEX = 2,    /* integers 0 .. hi-1, with repetitions */
    BURN_FILL_SPECIAL = 3,  /* NaN, +-inf, +-0, subnormals, extremes among ordinary values */
    BURN_FILL_BOOL = 4,     /* 0 and 1 */
    BURN_FILL_DISTINCT = 5, /* all different, spaced by at least 0.05 (no ties) */
    BURN_FILL_VALUES = 6,   /* `values`, repeated */
    BURN_FILL_NONZERO = 7   /* 0.5..2 in size, either sign */
};

typedef struct burn_sample_operand {
    uint8_t kind;  /* BURN_ABSENT, BURN_TENSOR, BURN_IMMEDIATE */
    uint8_t dtype; /* 0: each dtype of the role in turn (the same for all operands tied to it) */
    uint8_t rank;
    uint8_t fill;
    uint32_t n_values;
    int64_t dims[BURN_MAX_RANK];
    double lo; /* also the value of an immediate */
    double hi;
    const double *values;
} burn_sample_operand;

/* burn_sample.flags */
enum {
    BURN_SAMPLE_NO_GRAD = 1,  /* a kink or special values: forward only */
    BURN_SAMPLE_ERROR = 2,    /* must fail with `error` */
    BURN_SAMPLE_ABSOLUTE = 4, /* a pointwise op whose terms may cancel, or underflow on the way */
    BURN_SAMPLE_ANY_ZERO = 8  /* the op does not say which sign its zeros have */
};

/*
 * One sample. `tolerance` is in epsilons of the dtype: an element passes when it differs by at most
 * tolerance * eps * max(|expected|, floor). The floor is the smallest normal number where the op is
 * BURN_FUSE_POINTWISE and the sample is not BURN_SAMPLE_ABSOLUTE, else 1. 0 means equal. Zeros have
 * the sign that eval gives them where the op is pointwise or the tolerance 0, unless the sample is
 * BURN_SAMPLE_ANY_ZERO.
 */
typedef struct burn_sample {
    uint32_t struct_size;
    uint32_t flags;
    const char *name;
    uint32_t n_in;
    int32_t error;
    double tolerance;
    double grad_tolerance;
    uint64_t dtypes; /* restricts operand dtype 0 to this set (word 0), 0 = as the role says */
    uint32_t attrs_size;
    uint32_t n_out; /* 0: as many as the op has roles of outputs */
    unsigned char attrs[BURN_MAX_ATTRS];
    burn_sample_operand in[16];
} burn_sample;

typedef struct burn_op_def {
    uint32_t struct_size;
    uint32_t flags;
    uint64_t id;
    uint16_t revision;
    uint16_t n_in; /* roles of inputs; a variadic op has more operands than roles */
    uint16_t n_out; /* roles of outputs, likewise */
    uint16_t n_aliases;
    const char *name;
    const char *summary;
    const burn_role *roles; /* n_in inputs, then n_out outputs */
    const burn_attr *attrs;
    const burn_alias *aliases;
    uint32_t role_stride;
    uint32_t attr_stride;
    uint32_t alias_stride;
    uint32_t n_attrs;
    uint32_t attrs_size;
    uint32_t effect;
    uint32_t fuse;
    uint32_t fuse_opcode;
    int32_t(BURN_CALL *infer)(const burn_infer *a);
    int32_t(BURN_CALL *view)(const burn_view *a);
    int32_t(BURN_CALL *vjp)(const burn_builder *b, const burn_vjp *a);
    const char *no_vjp; /* the reason, when there is neither vjp nor a way round it */
    /* Per input i: which inputs (bits 0..15) and outputs (bits 16..31) its gradient needs. */
    const uint32_t *vjp_saves;
    int32_t(BURN_CALL *decompose)(const burn_builder *b, const burn_expand *a);
    int32_t(BURN_CALL *eval)(const burn_eval *a);
    /* Fills sample `i`; BURN_E_END after the last. */
    int32_t(BURN_CALL *samples)(uint32_t i, burn_sample *out);
    uint64_t(BURN_CALL *flops)(const burn_infer *a);
    int32_t autocast;
    uint32_t zero;
    void *reserved_jvp;
    void *reserved_batch;
} burn_op_def;

#define BURN_SAVE_IN(i) (1u << (i))
#define BURN_SAVE_OUT(j) (1u << (16 + (j)))

BURN_END_DECLS

#endif /* BURN_OP_DEF_H */
