/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * main.c - the table of commands, their help, and reading of options.
 *
 * To add a command: a row below, its function in cmd_<name>.c, and a test in tests/cli.
 */
#include "cli.h"

#include <burn/device.h>
#include <burn/version.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cli_command commands[] = {
    {"devices", "the devices of this machine, and what a device string picks",
     "  --resolve [STRING]  only say what STRING (else BURN_DEVICE, else auto) picks\n",
     "  burn devices\n"
     "  burn devices --resolve flex:0\n"
     "  BURN_DEVICE=cuda,flex burn devices --resolve --json\n",
     cli_devices},
    {"plugins", "the plugins that were found, and the folders that were searched",
     "  --open  also open them, to see whether they can be used\n",
     "  burn plugins\n"
     "  BURN_PLUGIN_PATH=$PWD/build/sdk/mock burn plugins --open\n",
     cli_plugins},
    {"ops", "the ops, and how a device serves each of them",
     "  [NAME]       one op in detail: operands, attributes, kernels\n"
     "  --device D   the device (else BURN_DEVICE, else auto)\n"
     "  --dtype T    only this dtype\n"
     "  --extension ID  loads an extension first\n"
     "  --markdown   the definitions as a page of Markdown (docs/ops.md)\n",
     "  burn ops\n"
     "  burn ops fused.swiglu --extension fused\n"
     "  burn ops matmul --device flex\n"
     "  burn ops --dtype f32 --json\n",
     cli_ops},
    {"doctor", "what works on this machine, what does not, and why", "",
     "  burn doctor\n"
     "  burn doctor --json\n",
     cli_doctor},
    {"env", "tuning environments: which kernel is the fastest for what, on this machine",
     "  list                the environments of this user\n"
     "  show NAME           what is in one, or in a file (a path with a slash)\n"
     "  prepare NAME -- PROGRAM ARGS...  runs a program that fills it; its exit status is passed\n"
     "                      on. With --json its standard output goes to standard error\n"
     "  prepare NAME --matmul SIZES  or by matrix products: 64x128x256,512x512x512\n"
     "  prepare NAME --conv2d SIZES  or by convolutions and their gradients, input:kernel and\n"
     "                      stride s, padding p, dilation d, groups g: 8x3x32x32:16x5x5:s2:p1x2\n"
     "  prepare NAME --conv1d SIZES  the same for one axis: 8x4x100:16x3:p1,8x16x50:16x3:g4\n"
     "  export NAME FILE    copies it to a file, for other machines\n"
     "  import NAME FILE    takes a file in\n"
     "  clear NAME          removes it\n"
     "  --device D          for sizes: the device (else BURN_DEVICE, else auto)\n"
     "  --dtype T           for sizes: f32 (default) or f64\n",
     "  burn env prepare lab -- ./train --epochs 1\n"
     "  BURN_ENVIRONMENT=lab ./train\n"
     "  burn env show lab\n",
     cli_env},
    {"explain", "runs a program and tells which kernel each of its ops got, and why",
     "  -- PROGRAM ARGS...  the program; its exit status is passed on, 128 + n for signal n.\n"
     "                      With --json its standard output goes to standard error\n",
     "  burn explain -- ./train --epochs 1\n"
     "  BURN_DEVICE=mock burn explain --json -- ./train > ops.json\n",
     cli_explain},
    {"plans", "runs a program and shows the plans of its calls: groups, programs, memory, uses",
     "  -- PROGRAM ARGS...  the program; its exit status is passed on, 128 + n for signal n.\n"
     "                      With --json its standard output goes to standard error\n",
     "  burn plans -- ./train --epochs 1\n",
     cli_plans},
    {"profile", "runs a program and tells what its kernels and places spent their time on",
     "  -- PROGRAM ARGS...  the program; its exit status is passed on, 128 + n for signal n.\n"
     "                      With --json its standard output goes to standard error\n"
     "  --trace FILE        writes a trace for chrome://tracing or Perfetto\n"
     "  --top N             how many ops to print (default 20)\n"
     "  --shapes            tells calls of different sizes apart, as --json does\n",
     "  burn profile -- ./train --epochs 1\n"
     "  burn profile --trace train.json --shapes -- ./train\n",
     cli_profile},
    {"inspect", "tensors, metadata and graph of a model file",
     "  FILE     a burnpack file (.bpk)\n"
     "  --graph  print the graph, one line per op\n",
     "  burn inspect model.bpk\n"
     "  burn inspect model.bpk --graph\n",
     cli_inspect},
    {"predict", "the class of an image, by the graph in a model file",
     "  FILE         a burnpack file with a graph whose only input is one gray image: bytes from\n"
     "               0 to 255 where the graph takes u8, those divided by 255 where it takes f32;\n"
     "               what else a model was trained with (a mean, a deviation) is the graph's part\n"
     "  --image PNG  the image; made gray and resized as the graph needs it\n"
     "  --idx FILE   or an IDX file of images (MNIST), plain or .gz\n"
     "  --index N    which one of them, from 0 (default 0)\n"
     "  --top K      how many classes to print (default 3)\n"
     "  --device D   the device (else BURN_DEVICE, else auto)\n",
     "  burn predict model.bpk --image digit.png\n"
     "  burn predict model.bpk --idx examples/data/mnist/t10k-images-idx3-ubyte.gz --index 7\n",
     cli_predict},
    {"new", "a plugin project of one's own, ready to build and to test",
     "  backend NAME    a backend; kernels for the minimal ops, a simulated device\n"
     "  extension NAME  an extension; one op with gradient, kernel and demo\n"
     "  --dir FOLDER    where (default ./NAME); must not be there yet\n"
     "  --templates FOLDER  other templates than those that are installed\n",
     "  burn new backend acme\n"
     "  burn new extension sig --dir ~/src/sig\n",
     cli_new},
};

enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

void cli_help(const cli_command *command)
{
    printf("burn %s - %s\n\noptions:\n%s"
           "  --json       one JSON object instead of text\n"
           "  --help       this text\n\nexamples:\n%s\n"
           "exit status: 0 fine, 1 what was asked for is wrong, 2 used wrongly\n",
           command->name, command->summary, command->usage, command->examples);
}

static int general_help(void)
{
    printf("burn %s\n\nusage: burn COMMAND [options]\n\n", burn_version());
    for (size_t i = 0; i < N_COMMANDS; i++) {
        printf("  %-8s  %s\n", commands[i].name, commands[i].summary);
    }
    printf("\n`burn COMMAND --help` has options and examples. --json works with each of them.\n");
    return CLI_FINE;
}

/* ---- options --------------------------------------------------------------------------------- */

static const cli_option *find_option(const cli_option *options, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(options[i].name, name) == 0) {
            return &options[i];
        }
    }
    return NULL;
}

static int is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0';
}

/* "-1" is a value that the command may refuse with its range, not an option. */
static int is_number(const char *word)
{
    return word[0] == '-' && word[1] >= '0' && word[1] <= '9';
}

int cli_parse(cli *c, const cli_option *options, size_t n, const char **word)
{
    /* First, so that errors of the call are JSON as well. */
    for (int i = 0; i < c->argc; i++) {
        c->json |= strcmp(c->argv[i], "--json") == 0;
    }
    for (int i = 0; i < c->argc; i++) {
        const char *arg = c->argv[i];
        const cli_option *o = find_option(options, n, arg);
        int last = i + 1 == c->argc;
        if (strcmp(arg, "--json") == 0) {
            continue;
        }
        if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            cli_help(c->command);
            return CLI_FINE;
        }
        if (o == NULL && is_option(arg)) {
            return cli_usage(c, "unknown option %s", arg);
        }
        if (o == NULL && (word == NULL || *word != NULL)) {
            return cli_usage(c, "one argument too many: '%s'", arg);
        }
        if (o == NULL) {
            *word = arg;
            continue;
        }
        if (o->flag != NULL) {
            *o->flag = 1;
        }
        int has_value = !last && (!is_option(c->argv[i + 1]) || is_number(c->argv[i + 1]));
        if (o->value != NULL && has_value) {
            i++;
            *o->value = c->argv[i];
        } else if (o->value != NULL && !o->value_optional) {
            return cli_usage(c, "%s needs a value", arg);
        }
    }
    return -1;
}

int cli_number(const cli *c, const char *option, const char *text, int64_t low, int64_t high,
               int64_t *out)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    int is_digit = text[0] >= '0' && text[0] <= '9';
    if (!is_digit || errno != 0 || *end != '\0' || value < low || value > high) {
        (void)cli_usage(c, "%s: '%s' is not a number from %lld to %lld", option, text,
                        (long long)low, (long long)high);
        return 0;
    }
    *out = value;
    return 1;
}

/* ---- main ------------------------------------------------------------------------------------ */

static int run(int argc, char **argv)
{
    if (argc < 2) {
        (void)general_help();
        return CLI_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ||
        (strcmp(name, "help") == 0 && argc == 2)) {
        return general_help();
    }
    if (strcmp(name, "--version") == 0) {
        printf("burn %s, plugin ABI %d.%d\n", burn_version(), BURN_ABI_MAJOR, BURN_ABI_MINOR);
        return CLI_FINE;
    }
    int help = strcmp(name, "help") == 0;
    name = help ? argv[2] : name;
    for (size_t i = 0; i < N_COMMANDS; i++) {
        cli c = {&commands[i], argc - 2, argv + 2, 0};
        if (strcmp(commands[i].name, name) != 0) {
            continue;
        }
        if (help) {
            cli_help(&commands[i]);
            return CLI_FINE;
        }
        return commands[i].run(&c);
    }
    cli_nearest nearest = {name, NULL, 0};
    for (size_t i = 0; i < N_COMMANDS; i++) {
        cli_nearest_try(&nearest, commands[i].name);
    }
    (void)fprintf(stderr, "burn: there is no command '%s'; %s%s%s`burn --help` lists them\n", name,
                  nearest.best != NULL ? "did you mean '" : "",
                  nearest.best != NULL ? nearest.best : "", nearest.best != NULL ? "'? " : "");
    return CLI_USAGE;
}

int main(int argc, char **argv)
{
    int status = run(argc, argv);
    burn_shutdown();
    /* A full disk behind a pipe must not look like success. */
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == CLI_FINE) {
        (void)fprintf(stderr, "burn: the output could not be written\n");
        status = CLI_WRONG;
    }
    return status;
}
