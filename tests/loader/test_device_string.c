/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * test_device_string.c - the grammar of device strings: each mistake and its message, each form.
 *
 * To add a mistake: a row with the string, whether it stands in BURN_DEVICE, and the message.
 */
#include "world.h"

#include <string.h>

typedef struct mistake {
    const char *text;
    uint32_t list;
    const char *message;
} mistake;

#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const mistake mistakes[] = {
    {"", 0, "the device string is empty; use \"auto\" or a backend's name, or NULL"},
    {"", 1, "BURN_DEVICE is empty; use \"auto\" or a backend's name, or unset it"},
    {" flex", 0, "position 1: blanks are not allowed; expected is a device name"},
    {"flex ", 0, "position 5: blanks are not allowed; expected is ':', '?', \"+autodiff\" or the"},
    {"flex\n", 0, "position 5: byte 0x0a where"},
    {"fl\xc3\xa9x", 0, "position 3: byte 0xc3 where"},
    {":0", 0, "position 1: ':' where a device name is expected"},
    {"CUDA", 0, "position 1: names are lower-case; did you mean \"cuda\"?"},
    {"flex,Cuda:1", 1, "position 6: names are lower-case; did you mean \"cuda\"?"},
    {"0flex", 0, "position 1: a name starts with a letter, not with '0'"},
    {"-flex", 0, "position 1: a name starts with a letter, not with '-'"},
    {"_", 0, "position 1: a name starts with a letter, not with '_'"},
    {A64, 0, "the name has 64 bytes; at most 63 are allowed"},
    {"flex:", 0, "position 6: it ends where an ordinal (0, 1, ...) is expected"},
    {"flex:x", 0, "position 6: 'x' where an ordinal"},
    {"flex:-1", 0, "position 6: '-' where an ordinal"},
    {"flex:+1", 0, "position 6: '+' where an ordinal"},
    {"flex: 1", 0, "position 6: blanks are not allowed"},
    {"flex:01", 0, "position 6: an ordinal has no leading zero; did you mean 1?"},
    {"flex:00", 0, "position 6: an ordinal has no leading zero; did you mean 0?"},
    {"flex:10000", 0, "position 6: an ordinal has at most 4 digits"},
    {"flex:99999999999999999999", 0, "position 6: an ordinal has at most 4 digits"},
    {"flex:1x", 0, "position 7: 'x' where '?', \"+autodiff\" or the end is expected"},
    {"flex:0:1", 0, "position 7: ':' where '?'"},
    {"flex?", 0, "position 6: it ends where an option's name"},
    {"flex?=1", 0, "position 6: '=' where an option's name"},
    {"flex?A=1", 0, "position 6: 'A' where an option's name (lower-case)"},
    {"flex?a", 0, "position 7: it ends where '=' and a value is expected"},
    {"flex?a=", 0, "position 8: it ends where an option's value is expected"},
    {"flex?a=&b=1", 0, "position 8: '&' where an option's value"},
    {"flex?a=1&", 0, "position 10: it ends where an option's name"},
    {"flex?a=1&a=2", 0, "position 10: option \"a\" was given before"},
    {"flex?a=1?b=2", 0, "position 9: '?' where '&', \"+autodiff\" or the end is expected"},
    {"flex?a=1 2", 0, "position 9: blanks are not allowed"},
    {"flex?a=" A64 A64 A64, 0, "position 6: options have more than 191 bytes"},
    {"flex+", 0, "position 5: the only suffix is \"+autodiff\""},
    {"flex+auto", 0, "position 5: the only suffix is \"+autodiff\""},
    {"flex+autodiff?a=1", 0, "position 14: \"+autodiff\" comes last"},
    {"flex+autodiff:1", 0, "position 14: \"+autodiff\" comes last"},
    {"flex+autodiff+autodiff", 0, "position 14: '+' where the end is expected"},
    {"flex+autodiffs", 0, "position 14: 's' where the end is expected"},
    {"auto:0", 0, "position 5: \"auto\" takes no ordinal"},
    {"auto?a=1", 0, "position 5: \"auto\" takes no options"},
    {"flex,cuda", 0, "position 5: one device is taken here; a list can only stand in BURN_DEVICE"},
    {"flex,", 1, "position 6: it ends where a device name is expected"},
    {",flex", 1, "position 1: ',' where a device name is expected"},
    {"flex,,cuda", 1, "position 6: ',' where a device name is expected"},
    {"flex, cuda", 1, "position 6: blanks are not allowed"},
    {"flex;cuda", 1, "position 5: ';' where"},
    {"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", 1, "position 33: more than 16 devices"},
};

static void each_mistake_has_position_and_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        burni_device_term terms[BURNI_DEVICE_TERMS];
        uint32_t n = 0;
        world_err e;
        int32_t code =
            burni_device_parse(mistakes[i].text, mistakes[i].list, terms, &n, world_err_init(&e));
        if (code >= 0) {
            fail_msg("taken: %s", mistakes[i].text);
        }
        world_expect(e.err.text, mistakes[i].message);
    }
    static char longest[BURNI_DEVICE_BYTES + 2];
    memset(longest, 'a', sizeof(longest) - 1);
    burni_device_term term;
    uint32_t n = 0;
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burni_device_parse(longest, 0, &term, &n, &err), BURN_E_LIMIT);
}

static void all_forms(void **state)
{
    (void)state;
    burni_device_term t[BURNI_DEVICE_TERMS];
    uint32_t n = 0;
    burn_err err = BURN_ERR_INIT;
    assert_int_equal(burni_device_parse("auto", 0, t, &n, &err), BURN_OK);
    assert_true(n == 1 && t[0].is_auto && !t[0].autodiff);
    assert_int_equal(burni_device_parse("auto+autodiff", 0, t, &n, &err), BURN_OK);
    assert_true(t[0].is_auto && t[0].autodiff);
    assert_int_equal(burni_device_parse("a-b_3:9999?k_1=x.Y:/@%~=-&z=0+autodiff", 0, t, &n, &err),
                     BURN_OK);
    assert_string_equal(t[0].id, "a-b_3");
    assert_true(t[0].has_ordinal && t[0].ordinal == 9999 && t[0].autodiff);
    assert_string_equal(t[0].options, "k_1=x.Y:/@%~=-&z=0");
    assert_int_equal(burni_device_parse("cuda:1,auto,flex?a=1", 1, t, &n, &err), BURN_OK);
    assert_int_equal(n, 3);
    assert_int_equal(t[1].column, 8);
    assert_int_equal(t[2].column, 13);
    assert_string_equal(t[2].options, "a=1");
}

static void distances(void **state)
{
    (void)state;
    assert_int_equal(burni_distance("cdua", "cuda"), 1);
    assert_int_equal(burni_distance("cud", "cuda"), 1);
    assert_int_equal(burni_distance("", "abc"), 3);
    assert_int_equal(burni_distance("vulkan", "vulcan"), 1);
    assert_int_equal(burni_distance("kitten", "sitting"), 3);
    assert_int_equal(burni_distance("flex", "flex"), 0);
    assert_int_equal(burni_distance(A64, "a"), UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_mistake_has_position_and_reason),
        cmocka_unit_test(all_forms),
        cmocka_unit_test(distances),
    };
    return cmocka_run_group_tests_name("loader/device_string", tests, NULL, NULL);
}
