/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * not_a_plugin.c - a valid shared library without the entry point. Linked to a plugin it makes a
 * library whose dependency has the entry; alone, one that has none; linked to a library that is
 * gone when it is loaded, one that cannot be loaded.
 */
int not_a_plugin(void);

__attribute__((visibility("default"))) int not_a_plugin(void)
{
    return 0;
}
