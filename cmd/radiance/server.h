/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the HTTP server.
 *
 * One thread, the loop's, owns every connection: it parses, answers, suspends
 * and resumes. The engine's thread only appends to a request under its lock
 * and puts it on the ready list. A request lives until the connection and all
 * of its choices have let go of it.
 *
 * Lock order: request, then ready list. */
#ifndef RADIANCE_SERVER_H
#define RADIANCE_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>
#include <microhttpd.h>

#include "radiance.h"

/* ---- growing text; a failed append sets `failed` */
struct buf {
    char *s;
    size_t len, cap;
    bool failed;
};
void buf_add(struct buf *b, const char *s, size_t n);
void buf_adds(struct buf *b, const char *s);
void buf_addf(struct buf *b, const char *fmt, ...) RAD_PRINTF(2, 3);
/* A JSON string with quotes; what is not UTF-8 becomes U+FFFD. */
void buf_json(struct buf *b, const char *s, size_t n);
void buf_release(struct buf *b);

/* ---- counters of /metrics */
enum { HIST_TTFT, HIST_E2E, HIST_PER_TOKEN, N_HIST };
#define HIST_BUCKETS 24
struct metrics {
    pthread_mutex_t lock;              /* guards the histograms */
    struct { uint64_t count[HIST_BUCKETS], n; double sum; } hist[N_HIST];
    atomic_uint_fast64_t responses[6]; /* by status / 100 */
    atomic_uint_fast64_t disconnects, admission_rejected;
};
void metrics_observe(struct metrics *m, int hist, double seconds);

struct server;
struct request;

enum api { API_CHAT = 1, API_COMPLETION = 2 };

/* One of a request's n outputs. The lock is the request's. */
struct choice {
    struct request *r;
    int index;
    uint64_t id;                       /* the engine's */
    struct rad_text *text;
    struct buf content;                /* all of it, when not streaming */
    struct buf logprobs;               /* JSON items not sent yet */
    struct buf tokens, token_lp, tops, offsets;   /* completion's four lists */
    size_t text_len;                   /* for text_offset */
    bool started, done, stopped;
    enum rad_finish finish;
    int64_t n_output;
    uint64_t first_ns, last_ns;
};

struct request {
    struct server *s;
    atomic_int refs;
    /* the loop's thread */
    struct MHD_Connection *conn;       /* NULL: gone */
    struct request *next_live, **prev_live;
    bool suspended, streaming, watched, responded, body_done;
    bool refused;                      /* answered no; what was submitted is cancelled */
    bool gone;                         /* the client is; written under the lock */
    struct buf body;
    uint64_t heartbeat_ns;
    /* constant once submitted */
    enum api api;
    char id[48];
    char *model;
    int64_t created;
    bool include_usage, logprobs, echo;
    int top_logprobs;
    char *prompt_text;                 /* echo */
    int n_choice;
    struct choice *choice;
    int64_t n_prompt;
    uint64_t start_ns;
    int submitted;                     /* choices the engine took */
    /* guarded by lock */
    pthread_mutex_t lock;
    struct buf out;                    /* SSE bytes to send */
    size_t out_at;
    int left;                          /* choices not done */
    bool failed;
    char error[RAD_ERR_TEXT];
    bool ready;                        /* on the ready list; guarded by the list's lock */
    struct request *next_ready;
};

struct server {
    const struct radiance *r;
    const struct radiance_http *http;
    struct MHD_Daemon *daemon;
    int epoll, wake;                   /* wake: eventfd written by any thread */
    bool stopping;
    struct request *live;
    pthread_mutex_t ready_lock;
    struct request *ready;
    struct metrics metrics;
};

/* http.c */
struct request *request_ref(struct request *r);
void request_unref(struct request *r);
void server_ready(struct request *r);  /* from any thread; r->lock held */
enum MHD_Result reply(struct request *r, int status, const char *type, struct buf *body);
enum MHD_Result reply_error(struct request *r, int status, const char *type, const char *code,
                            const char *param, const char *fmt, ...) RAD_PRINTF(6, 7);
enum MHD_Result reply_stream(struct request *r);
void request_suspend(struct request *r);

/* api.c: called on the loop's thread with the whole body; answers or suspends. */
enum MHD_Result api_generate(struct request *r, enum api api);
enum MHD_Result api_finish(struct request *r);      /* whole answer, all choices done */
enum MHD_Result api_models(struct request *r, const char *id);
enum MHD_Result api_tokenize(struct request *r);
enum MHD_Result api_detokenize(struct request *r);

/* output.c: token events to JSON. */
int output_token(void *user, const struct rad_token_event *ev);
void output_whole(struct request *r, struct buf *out);

/* metrics.c */
void metrics_text(struct server *s, struct buf *out);

#endif
