/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * report.c - writes the table and the JSON.
 */
#include "report.h"

#include "budget.h"
#include "roof.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <time.h>

/* ---- table ------------------------------------------------------------------------------- */

void bench_table_head(FILE *out, const struct bench_machine *machine, double others)
{
    fprintf(out, "%s, %d cores, %s; %s; %s\n", machine->cpu, machine->cpus, bench_peak_isa(),
            machine->system, machine->compiler);
    if (machine->round_trip > 0) {
        fprintf(out, "a line to another core and back: %.0f ns\n", machine->round_trip);
    }
    if (others > 0.1) {
        fprintf(out,
                "others keep %.1f cores busy: rows with as many threads as cores depend on luck\n",
                others);
    }
    fprintf(out, "%-30s %10s %-8s %6s  %10s %7s  %10s %9s  %s\n", "name", "value", "unit",
            "spread", "peer", "ratio", "limit", "fraction", "budget");
}

/* Four significant digits, or nothing. */
static void number_text(char *out, size_t size, double number)
{
    if (isnan(number)) {
        (void)snprintf(out, size, "-");
        return;
    }
    int decimals = number >= 1000 ? 0 : number >= 100 ? 1 : number >= 10 ? 2 : 3;
    (void)snprintf(out, size, "%.*f", decimals, number);
}

/* "ratio >= 8 met"; "-" for rows that have no budget. */
static void budget_text(FILE *out, const struct bench_row *row, const struct bench_result *result)
{
    const struct bench_budget *budget = bench_budget_next(row, NULL);
    fprintf(out, "  %s", budget == NULL ? "-" : "");
    while (budget != NULL) {
        fprintf(out, "%s %s %.3g %s", bench_of_name(budget->of),
                bench_is_most(budget) ? "<=" : ">=", budget->bound,
                bench_verdict_name(bench_judge(budget, result)));
        budget = bench_budget_next(row, budget);
        fprintf(out, "%s", budget != NULL ? ", " : "");
    }
}

void bench_table_row(FILE *out, const struct bench_row *row, const struct bench_result *result)
{
    char text[6][32];
    number_text(text[0], sizeof(text[0]), result->value);
    number_text(text[1], sizeof(text[1]), result->spread * 100);
    number_text(text[2], sizeof(text[2]), result->peer_value);
    number_text(text[3], sizeof(text[3]), result->ratio);
    number_text(text[4], sizeof(text[4]), result->limit);
    number_text(text[5], sizeof(text[5]), result->fraction);
    fprintf(out, "%-30s %10s %-8s %5s%%  %10s %7s  %10s %9s", row->name, text[0],
            bench_unit_name(row->unit), text[1], text[2], text[3], text[4], text[5]);
    budget_text(out, row, result);
    fprintf(out, "%s%s\n", result->note[0] != '\0' ? "  " : "", result->note);
    fflush(out);
}

/* ---- JSON -------------------------------------------------------------------------------- */

static void json_text(FILE *out, const char *text)
{
    if (text == NULL) {
        fprintf(out, "null");
        return;
    }
    fputc('"', out);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            fprintf(out, "\\%c", c);
        } else if (c < 0x20 || c >= 0x7f) {
            fprintf(out, "\\u%04x", c);
        } else {
            fputc(c, out);
        }
    }
    fputc('"', out);
}

static void json_number(FILE *out, const char *key, double number)
{
    if (isnan(number) || isinf(number)) {
        fprintf(out, ", \"%s\": null", key);
    } else {
        fprintf(out, ", \"%s\": %.6g", key, number);
    }
}

static void json_budgets(FILE *out, const struct bench_row *row, const struct bench_result *result)
{
    const struct bench_budget *budget = NULL;
    const char *comma = "";
    fprintf(out, ", \"budgets\": [");
    while ((budget = bench_budget_next(row, budget)) != NULL) {
        fprintf(out, "%s{\"of\": \"%s\", \"%s\": %.6g, \"verdict\": \"%s\"}", comma,
                bench_of_name(budget->of), bench_is_most(budget) ? "most" : "least",
                budget->bound, bench_verdict_name(bench_judge(budget, result)));
        comma = ", ";
    }
    fprintf(out, "]");
}

static void json_row(FILE *out, const struct bench_row *row, const struct bench_result *result)
{
    fprintf(out, "{\"name\": \"%s\"", row->name);
    json_number(out, "value", result->value);
    fprintf(out, ", \"unit\": \"%s\", \"peer\": ", bench_unit_name(row->unit));
    json_text(out, isnan(result->peer_value) ? NULL : bench_peer_name(row->peer));
    json_number(out, "peer_value", result->peer_value);
    json_number(out, "ratio", result->ratio);
    json_number(out, "limit", result->limit);
    json_number(out, "fraction", result->fraction);
    json_number(out, "spread", result->spread);
    json_budgets(out, row, result);
    fprintf(out, ", \"rounds\": %d, \"note\": ", result->rounds);
    json_text(out, result->note[0] != '\0' ? result->note : NULL);
    fprintf(out, "}");
}

static void json_machine(FILE *out, const struct bench_machine *machine)
{
    fprintf(out, "{\"cpu\": ");
    json_text(out, machine->cpu);
    fprintf(out, ", \"cpus\": %d, \"isa\": \"%s\", \"l2\": %lld, \"l3\": %lld, \"memory\": %lld",
            machine->cpus, bench_peak_isa(), (long long)machine->l2, (long long)machine->l3,
            (long long)machine->memory);
    fprintf(out, ", \"round_trip\": %.0f, \"system\": ", machine->round_trip);
    json_text(out, machine->system);
    fprintf(out, ", \"compiler\": ");
    json_text(out, machine->compiler);
    fprintf(out, "}");
}

int bench_write_json(FILE *out, const struct bench_report *report, int one_line)
{
    const char *line = one_line ? " " : "\n ";
    char date[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc) != NULL) {
        (void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &utc);
    }
    fprintf(out, "{\"format\": 1, \"date\": \"%s\", \"revision\": ", date);
    json_text(out, report->revision);
    fprintf(out, ", \"quick\": %s,%s\"machine\": ", report->quick ? "true" : "false", line);
    json_machine(out, report->machine);
    fprintf(out, ",%s\"others\": %.2f, \"device\": ", line, report->others);
    json_text(out, report->device != NULL ? report->device : "auto");
    fprintf(out, ", \"torch\": %s,%s\"rows\": [", report->has_torch ? "true" : "false", line);
    for (int i = 0; i < report->n_rows; i++) {
        fprintf(out, "%s%s", i > 0 ? "," : "", i > 0 || !one_line ? line : "");
        json_row(out, &report->rows[i], &report->results[i]);
    }
    fprintf(out, "]}\n");
    return fflush(out) == 0 && ferror(out) == 0 ? 0 : -1;
}
