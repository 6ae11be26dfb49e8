/* SPDX-License-Identifier: Apache-2.0 */
/* /metrics in the Prometheus text format 0.0.4, with vLLM's names where they
 * mean the same, so that dashboards made for it work. */
#include <string.h>

#include "server.h"

static const struct { const char *name, *help; double edge[HIST_BUCKETS]; } hist[N_HIST] = {
    [HIST_TTFT] = { "vllm:time_to_first_token_seconds", "time to the first token",
        { .001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
          160, 640, 2560 } },
    [HIST_E2E] = { "vllm:e2e_request_latency_seconds", "time to the last token",
        { .3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920,
          7680 } },
    [HIST_PER_TOKEN] = { "vllm:time_per_output_token_seconds", "time per token after the first",
        { .01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80 } },
};

void metrics_observe(struct metrics *m, int h, double seconds)
{
    pthread_mutex_lock(&m->lock);
    for (int i = 0; i < HIST_BUCKETS && hist[h].edge[i] > 0; i++)
        m->hist[h].count[i] += seconds <= hist[h].edge[i];
    m->hist[h].n++;
    m->hist[h].sum += seconds;
    pthread_mutex_unlock(&m->lock);
}

static void head(struct buf *b, const char *name, const char *type, const char *help)
{
    buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* label: the braces' inside, ready. */
static void put(struct buf *b, const char *name, const char *label, double v)
{
    buf_addf(b, "%s{%s} %.17g\n", name, label, v);
}

void metrics_text(struct server *s, struct buf *out)
{
    struct rad_engine_stats st;
    rad_engine_stats(s->r->engine, &st);
    struct buf label = { 0 }, quoted = { 0 };
    buf_json(&quoted, s->r->name, strlen(s->r->name));
    buf_addf(&label, "model_name=%s,engine=\"0\"", quoted.s ? quoted.s : "\"\"");
    const char *l = label.s ? label.s : "";
    double kv = st.kv_blocks_total ? (double)st.kv_blocks_used / (double)st.kv_blocks_total : 0;
    const struct { const char *name, *type, *help; double v; } one[] = {
        { "vllm:num_requests_running", "gauge", "requests that run", (double)st.running },
        { "vllm:num_requests_waiting", "gauge", "requests that wait", (double)st.waiting },
        { "vllm:kv_cache_usage_perc", "gauge", "share of the KV pages in use", kv },
        { "vllm:prompt_tokens_total", "counter", "prompt tokens computed",
          (double)st.prompt_tokens },
        { "vllm:generation_tokens_total", "counter", "tokens generated", (double)st.output_tokens },
        { "vllm:num_preemptions_total", "counter", "sequences preempted", (double)st.preemptions },
        { "radiance:engine_steps_total", "counter", "steps", (double)st.steps },
        { "radiance:engine_steps_prefill_total", "counter", "steps of prompts only",
          (double)st.steps_prefill },
        { "radiance:engine_steps_decode_total", "counter", "steps of decode rows only",
          (double)st.steps_decode },
        { "radiance:engine_steps_mixed_total", "counter", "steps of both", (double)st.steps_mixed },
        { "radiance:engine_step_seconds_total", "counter", "time spent in steps",
          (double)st.step_ns * 1e-9 },
        { "radiance:http_queue_depth", "gauge", "places of the waiting queue",
          (double)st.queue_cap },
        { "radiance:http_admission_rejected_total", "counter",
          "requests refused as the queue was full",
          (double)atomic_load(&s->metrics.admission_rejected) },
        { "radiance:client_disconnect_total", "counter", "clients that went away",
          (double)atomic_load(&s->metrics.disconnects) },
    };
    for (size_t i = 0; i < sizeof one / sizeof *one; i++) {
        head(out, one[i].name, one[i].type, one[i].help);
        put(out, one[i].name, l, one[i].v);
    }
    static const char *const reason[] = { NULL, "stop", "length", "abort", "error" };
    head(out, "vllm:request_success_total", "counter", "finished requests");
    for (int i = 1; i < 5; i++) {
        struct buf with = { 0 };
        buf_addf(&with, "%s,finished_reason=\"%s\"", l, reason[i]);
        put(out, "vllm:request_success_total", with.s ? with.s : "", (double)st.finished[i]);
        buf_release(&with);
    }
    head(out, "radiance:http_responses_total", "counter", "responses by class");
    for (int i = 2; i < 6; i++) {
        struct buf with = { 0 };
        buf_addf(&with, "%s,class=\"%dxx\"", l, i);
        put(out, "radiance:http_responses_total", with.s ? with.s : "",
            (double)atomic_load(&s->metrics.responses[i]));
        buf_release(&with);
    }
    pthread_mutex_lock(&s->metrics.lock);
    for (int h = 0; h < N_HIST; h++) {
        head(out, hist[h].name, "histogram", hist[h].help);
        for (int i = 0; i < HIST_BUCKETS && hist[h].edge[i] > 0; i++)
            buf_addf(out, "%s_bucket{%s,le=\"%g\"} %llu\n", hist[h].name, l, hist[h].edge[i],
                     (unsigned long long)s->metrics.hist[h].count[i]);
        buf_addf(out, "%s_bucket{%s,le=\"+Inf\"} %llu\n%s_sum{%s} %.9g\n%s_count{%s} %llu\n",
                 hist[h].name, l, (unsigned long long)s->metrics.hist[h].n, hist[h].name, l,
                 s->metrics.hist[h].sum, hist[h].name, l, (unsigned long long)s->metrics.hist[h].n);
    }
    pthread_mutex_unlock(&s->metrics.lock);
    buf_release(&label);
    buf_release(&quoted);
}
