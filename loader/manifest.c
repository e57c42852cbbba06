/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * manifest.c - reads and checks the manifest of a plugin (docs/manifest.md).
 *
 * A manifest is hostile until checked: its size and depth are capped before the parser sees it,
 * every field has a type, a length and a grammar, and `file` cannot leave the manifest's folder.
 * Unknown keys are ignored, so that a newer SDK may add some; unknown formats are refused. Keeps no
 * state. [any] To add a text field: a row in `texts` and a member of burni_manifest.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "loader/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#define MANIFEST_FORMAT 1
#define MANIFEST_DEPTH 8
#define PRIORITY_LIMIT 1000

typedef struct text_rule {
    const char *key;
    size_t offset;
    size_t cap;
    int optional;
} text_rule;

/* `id` stands first: a message about the rest can then name the plugin. */
static const text_rule texts[] = {
    {"id", offsetof(burni_manifest, id), sizeof(((burni_manifest *)0)->id), 0},
    {"name", offsetof(burni_manifest, name), sizeof(((burni_manifest *)0)->name), 0},
    {"kind", offsetof(burni_manifest, kind), sizeof(((burni_manifest *)0)->kind), 0},
    {"file", offsetof(burni_manifest, file), sizeof(((burni_manifest *)0)->file), 0},
    {"version", offsetof(burni_manifest, version), sizeof(((burni_manifest *)0)->version), 0},
    {"license", offsetof(burni_manifest, license), sizeof(((burni_manifest *)0)->license), 0},
    {"devices", offsetof(burni_manifest, devices), sizeof(((burni_manifest *)0)->devices), 1},
};

static const char *const other_keys[] = {"format", "abi", "priority", "needs"};

/* The parser recurses; so the depth is checked first, by counting brackets outside strings. */
static int too_deep(const char *bytes, size_t n)
{
    int depth = 0;
    int in_string = 0;
    for (size_t i = 0; i < n; i++) {
        char c = bytes[i];
        if (in_string && c == '\\') {
            i++;
        } else if (c == '"') {
            in_string = !in_string;
        } else if (!in_string && (c == '{' || c == '[')) {
            depth++;
        } else if (!in_string && (c == '}' || c == ']')) {
            depth--;
        }
        if (depth > MANIFEST_DEPTH) {
            return 1;
        }
    }
    return 0;
}

static int32_t read_text(const json_t *object, const char *key, int optional, char *out, size_t cap,
                         burn_err *err)
{
    const json_t *value = json_object_get(object, key);
    if (value == NULL && optional) {
        return BURN_OK;
    }
    if (value == NULL) {
        return burni_fail(err, BURN_E_FORMAT, "\"%s\" is missing", key);
    }
    if (!json_is_string(value)) {
        return burni_fail(err, BURN_E_FORMAT, "\"%s\" must be a string", key);
    }
    const char *text = json_string_value(value);
    size_t n = json_string_length(value);
    if (n == 0 || n >= cap) {
        return burni_fail(err, BURN_E_FORMAT, "\"%s\" has %zu bytes; 1 to %zu are allowed", key, n,
                          cap - 1);
    }
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f) {
            return burni_fail(err, BURN_E_FORMAT, "\"%s\" holds the control byte 0x%02x", key, c);
        }
    }
    memcpy(out, text, n);
    out[n] = '\0';
    return BURN_OK;
}

static int32_t read_integer(const json_t *object, const char *key, int64_t lo, int64_t hi,
                            int64_t *out, burn_err *err)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value)) {
        return burni_fail(err, BURN_E_FORMAT, "\"%s\" must be a whole number", key);
    }
    int64_t number = (int64_t)json_integer_value(value);
    if (number < lo || number > hi) {
        return burni_fail(err, BURN_E_FORMAT, "\"%s\" is %lld; %lld to %lld are allowed", key,
                          (long long)number, (long long)lo, (long long)hi);
    }
    *out = number;
    return BURN_OK;
}

static int32_t check_format(const json_t *root, burn_err *err)
{
    int64_t format = 0;
    int32_t code = read_integer(root, "format", 1, INT32_MAX, &format, err);
    if (code == BURN_OK && format != MANIFEST_FORMAT) {
        code = burni_fail(err, BURN_E_FORMAT,
                          "format %lld is not known, this library reads format %d; update the "
                          "library or install an older plugin",
                          (long long)format, MANIFEST_FORMAT);
    }
    return code;
}

/* One half of "major.minor": digits, no sign, no leading zero. */
static const char *read_half(const char *at, uint32_t *out)
{
    if (*at < '0' || *at > '9' || (at[0] == '0' && at[1] >= '0' && at[1] <= '9')) {
        return NULL;
    }
    uint32_t number = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        number = number * 10 + (uint32_t)(*at - '0');
        if (number > 65535) {
            return NULL;
        }
    }
    *out = number;
    return at;
}

static int32_t read_version(const json_t *abi, const char *key, uint32_t *out, burn_err *err)
{
    char text[16] = "";
    int32_t code = read_text(abi, key, 0, text, sizeof(text), err);
    if (code != BURN_OK) {
        burni_prefix(err, "\"abi\"");
        return code;
    }
    uint32_t major = 0;
    uint32_t minor = 0;
    const char *at = read_half(text, &major);
    if (at != NULL && *at == '.') {
        at = read_half(at + 1, &minor);
    } else {
        at = NULL;
    }
    if (at == NULL || *at != '\0') {
        return burni_fail(err, BURN_E_FORMAT, "\"abi\": \"%s\" is \"%s\", not \"major.minor\"", key,
                          text);
    }
    *out = BURN_ABI_VERSION(major, minor);
    return BURN_OK;
}

static int32_t read_abi(const json_t *root, burni_manifest *out, burn_err *err)
{
    const json_t *abi = json_object_get(root, "abi");
    if (!json_is_object(abi)) {
        return burni_fail(err, BURN_E_FORMAT,
                          "\"abi\" must be an object with \"oldest\" and \"newest\"");
    }
    int32_t code = read_version(abi, "oldest", &out->abi_oldest, err);
    if (code == BURN_OK) {
        code = read_version(abi, "newest", &out->abi_newest, err);
    }
    if (code == BURN_OK && out->abi_oldest > out->abi_newest) {
        code = burni_fail(err, BURN_E_FORMAT, "\"abi\": \"oldest\" is above \"newest\"");
    }
    return code;
}

static int32_t read_needs(const json_t *root, burni_manifest *out, burn_err *err)
{
    const json_t *needs = json_object_get(root, "needs");
    if (needs == NULL) {
        return BURN_OK;
    }
    size_t n = json_array_size(needs);
    if (!json_is_array(needs) || n > BURNI_MANIFEST_NEEDS) {
        return burni_fail(err, BURN_E_FORMAT, "\"needs\" must be an array of at most %d objects",
                          BURNI_MANIFEST_NEEDS);
    }
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(needs, i);
        burni_need *need = &out->needs[i];
        if (!json_is_object(item)) {
            return burni_fail(err, BURN_E_FORMAT, "\"needs\"[%zu] must be an object", i);
        }
        int32_t code = read_text(item, "library", 0, need->library, sizeof(need->library), err);
        if (code == BURN_OK) {
            code = read_text(item, "hint", 0, need->hint, sizeof(need->hint), err);
        }
        if (code != BURN_OK) {
            burni_prefix(err, "\"needs\"[%zu]", i);
            return code;
        }
        out->n_needs++;
    }
    return BURN_OK;
}

/* The file lies in the manifest's folder or below it: no root, no empty, "." or ".." component. */
static int32_t check_file(const char *file, burn_err *err)
{
    const char *at = file;
    for (;;) {
        size_t n = strcspn(at, "/");
        int dots = (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.');
        if (n == 0 || dots) {
            return burni_fail(err, BURN_E_DENIED,
                              "\"file\" is \"%.80s\"; it must be a path below the manifest's "
                              "folder, without \"..\" and not absolute",
                              file);
        }
        if (at[n] == '\0') {
            return BURN_OK;
        }
        at += n + 1;
    }
}

static int32_t check_texts(const burni_manifest *m, burn_err *err)
{
    if (strcmp(m->kind, "backend") != 0 && strcmp(m->kind, "extension") != 0) {
        return burni_fail(err, BURN_E_FORMAT,
                          "\"kind\" is \"%s\"; \"backend\" and \"extension\" are known", m->kind);
    }
    if (m->devices[0] != '\0' && !burni_is_name(m->devices, strlen(m->devices))) {
        return burni_fail(err, BURN_E_FORMAT,
                          "\"devices\" is \"%s\", not a name like \"cpu\" or \"gpu\"", m->devices);
    }
    return check_file(m->file, err);
}

static int32_t read_id(const json_t *root, burni_manifest *out, burn_err *err)
{
    char id[sizeof(out->id)] = "";
    int32_t code = read_text(root, "id", 0, id, sizeof(id), err);
    if (code != BURN_OK) {
        return code;
    }
    if (!burni_is_name(id, strlen(id)) || strcmp(id, "auto") == 0) {
        return burni_fail(err, BURN_E_FORMAT,
                          "\"id\" is \"%s\"; it must be lower-case letters, digits, '_' and '-', "
                          "starting with a letter, and not \"auto\"",
                          id);
    }
    memcpy(out->id, id, sizeof(id));
    return BURN_OK;
}

static int is_known_key(const char *key)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(key, texts[i].key) == 0) {
            return 1;
        }
    }
    for (size_t i = 0; i < sizeof(other_keys) / sizeof(other_keys[0]); i++) {
        if (strcmp(key, other_keys[i]) == 0) {
            return 1;
        }
    }
    return 0;
}

static void log_unknown_keys(json_t *root, const char *id)
{
    if (!burni_log_wants(BURN_LOG_INFO)) {
        return;
    }
    for (void *it = json_object_iter(root); it != NULL; it = json_object_iter_next(root, it)) {
        if (!is_known_key(json_object_iter_key(it))) {
            char key[64];
            burni_text_clean(key, sizeof(key), json_object_iter_key(it));
            burni_log(BURN_LOG_INFO, "loader", "manifest of %s: unknown key \"%s\" ignored", id,
                      key);
        }
    }
}

/* Other tools write JSON files, too: one with none of these keys was never meant as a manifest. */
static int is_foreign(const json_t *root)
{
    return json_object_get(root, "format") == NULL && json_object_get(root, "id") == NULL &&
           json_object_get(root, "kind") == NULL;
}

static int32_t read_root(json_t *root, burni_manifest *out, burn_err *err)
{
    out->is_foreign = is_foreign(root);
    if (!json_is_object(root)) {
        return burni_fail(err, BURN_E_FORMAT, "the manifest must be a JSON object");
    }
    int32_t code = check_format(root, err);
    if (code == BURN_OK) {
        code = read_id(root, out, err);
    }
    for (size_t i = 1; code == BURN_OK && i < sizeof(texts) / sizeof(texts[0]); i++) {
        const text_rule *rule = &texts[i];
        code = read_text(root, rule->key, rule->optional, (char *)out + rule->offset, rule->cap,
                         err);
    }
    if (code == BURN_OK) {
        code = check_texts(out, err);
    }
    if (code == BURN_OK) {
        code = read_abi(root, out, err);
    }
    int64_t priority = 0;
    if (code == BURN_OK && json_object_get(root, "priority") != NULL) {
        code = read_integer(root, "priority", -PRIORITY_LIMIT, PRIORITY_LIMIT, &priority, err);
    }
    out->priority = (int32_t)priority;
    if (code == BURN_OK) {
        code = read_needs(root, out, err);
    }
    if (code == BURN_OK) {
        log_unknown_keys(root, out->id);
    }
    return code;
}

int32_t burni_manifest_parse(const char *bytes, size_t n, burni_manifest *out, burn_err *err)
{
    memset(out, 0, sizeof(*out));
    if (n == 0) {
        return burni_fail(err, BURN_E_FORMAT, "the manifest is empty");
    }
    if (n > BURNI_MANIFEST_BYTES) {
        return burni_fail(err, BURN_E_LIMIT, "the manifest has more than %d bytes",
                          BURNI_MANIFEST_BYTES);
    }
    if (too_deep(bytes, n)) {
        return burni_fail(err, BURN_E_LIMIT, "the manifest is nested deeper than %d levels",
                          MANIFEST_DEPTH);
    }
    json_error_t bad;
    json_t *root = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, &bad);
    if (root == NULL) {
        char text[120];
        burni_text_clean(text, sizeof(text), bad.text);
        return burni_fail(err, BURN_E_FORMAT, "not valid JSON at line %d, column %d: %s", bad.line,
                          bad.column, text);
    }
    int32_t code = read_root(root, out, err);
    json_decref(root);
    return code;
}

/* Reads at most one byte more than allowed, so that the parser sees that there is too much. */
static int32_t read_bytes(int fd, char *buffer, size_t cap, size_t *out_n, burn_err *err)
{
    size_t n = 0;
    while (n < cap) {
        ssize_t got = read(fd, buffer + n, cap - n);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return burni_fail(err, BURN_E_IO, "cannot read the manifest: %s", strerror(errno));
        }
        if (got == 0) {
            break;
        }
        n += (size_t)got;
    }
    *out_n = n;
    return BURN_OK;
}

/* A list, which no manifest is; such files of build systems are often larger than one may be. */
static int begins_as_list(int fd)
{
    char first = '\0';
    return pread(fd, &first, 1, 0) == 1 && first == '[';
}

static int32_t check_opened(int fd, const char *path, burni_manifest *out, burn_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return burni_fail(err, BURN_E_IO, "cannot look at the manifest: %s", strerror(errno));
    }
    if (!S_ISREG(st.st_mode)) {
        return burni_fail(err, BURN_E_FORMAT, "the manifest is not a regular file");
    }
    if (st.st_size > BURNI_MANIFEST_BYTES) {
        out->is_foreign = begins_as_list(fd);
        return burni_fail(err, BURN_E_LIMIT, "the manifest has %lld bytes; at most %d are allowed",
                          (long long)st.st_size, BURNI_MANIFEST_BYTES);
    }
    return burni_check_owner(&st, path, err);
}

int32_t burni_manifest_read(const char *path, burni_manifest *out, burn_err *err)
{
    memset(out, 0, sizeof(*out));
    /* Without O_NONBLOCK a pipe put in the folder would hang the process. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return burni_fail(err, BURN_E_IO, "cannot open the manifest: %s", strerror(errno));
    }
    size_t cap = BURNI_MANIFEST_BYTES + 1;
    size_t n = 0;
    char *bytes = NULL;
    int32_t code = check_opened(fd, path, out, err);
    if (code == BURN_OK) {
        bytes = burni_alloc(cap);
        code = bytes != NULL ? read_bytes(fd, bytes, cap, &n, err)
                             : burni_fail(err, BURN_E_NO_MEMORY, "no memory for a manifest");
    }
    (void)close(fd);
    if (code == BURN_OK) {
        code = burni_manifest_parse(bytes, n, out, err);
    }
    burni_free(bytes);
    return code;
}
