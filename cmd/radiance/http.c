/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the loop: libmicrohttpd driven from our own epoll, so that the engine's
 * thread can wake it and so that a client that goes away is noticed while its
 * connection is suspended (libmicrohttpd does not look at those). */
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "cmd.h"
#include "server.h"

enum { HEARTBEAT_MS = 700, TICK_MS = 250 };

static volatile sig_atomic_t signals;
static int signal_fd = -1;

/* ---- a request's life */
struct request *request_ref(struct request *r)
{
    atomic_fetch_add(&r->refs, 1);
    return r;
}

void request_unref(struct request *r)
{
    if (atomic_fetch_sub(&r->refs, 1) != 1)
        return;
    for (int i = 0; i < r->n_choice && r->choice; i++) {
        struct choice *c = &r->choice[i];
        rad_text_free(c->text);
        buf_release(&c->content);
        buf_release(&c->logprobs);
        buf_release(&c->tokens);
        buf_release(&c->token_lp);
        buf_release(&c->tops);
        buf_release(&c->offsets);
    }
    free(r->choice);
    free(r->model);
    free(r->prompt_text);
    buf_release(&r->body);
    buf_release(&r->out);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

void server_ready(struct request *r)
{
    struct server *s = r->s;
    uint64_t one = 1;
    pthread_mutex_lock(&s->ready_lock);
    bool queued = r->ready;
    if (!queued) {
        r->ready = true;
        r->next_ready = s->ready;
        s->ready = request_ref(r);
    }
    pthread_mutex_unlock(&s->ready_lock);
    if (!queued && write(s->wake, &one, sizeof one) < 0)
        rad_log(RAD_LOG_ERROR, "http", "cannot wake the server: %s", strerror(errno));
}

/* From its first to its last byte a connection is also in our own epoll, for
 * EPOLLRDHUP: libmicrohttpd does not look at suspended connections, and does
 * not see an end that came with the last bytes. Freed by on_connection only,
 * so never between epoll_wait and MHD_run. */
struct conn {
    int fd;
    struct request *r;                 /* the one being served, or NULL */
    bool ended;                        /* told once */
};

static bool watch(struct server *s, struct conn *c, int op)
{
    struct epoll_event ev = { .events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = c };
    return epoll_ctl(s->epoll, op, c->fd, &ev) == 0;
}

static struct conn *conn_of(struct MHD_Connection *m)
{
    const union MHD_ConnectionInfo *i =
        MHD_get_connection_info(m, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return i ? i->socket_context : NULL;
}

/* An end that was seen before there was something to cancel is seen again. */
static void rewatch(struct request *r)
{
    struct conn *c = conn_of(r->conn);
    if (c && !r->watched)
        r->watched = watch(r->s, c, EPOLL_CTL_MOD);
}

void request_suspend(struct request *r)
{
    rewatch(r);
    r->suspended = true;
    r->heartbeat_ns = cmd_now_ns();
    MHD_suspend_connection(r->conn);
}

static void request_resume(struct request *r)
{
    if (!r->conn || !r->suspended)
        return;
    r->suspended = false;
    MHD_resume_connection(r->conn);
}

static bool all_done(struct request *r)
{
    pthread_mutex_lock(&r->lock);
    bool d = r->left == 0;
    pthread_mutex_unlock(&r->lock);
    return d;
}

static void cancel(struct request *r)
{
    for (int i = 0; i < r->submitted; i++)
        rad_engine_cancel(r->s->r->engine, r->choice[i].id);
}

/* ---- answers */
static void common_headers(const struct request *r, struct MHD_Response *m, const char *type)
{
    MHD_add_response_header(m, "Content-Type", type);
    if (r->s->http->cors)
        MHD_add_response_header(m, "Access-Control-Allow-Origin", "*");
}

enum MHD_Result reply(struct request *r, int status, const char *type, struct buf *body)
{
    if (body->failed) {
        buf_release(body);
        return MHD_NO;
    }
    struct MHD_Response *m = MHD_create_response_from_buffer(body->len, body->s ? body->s : "",
        body->s ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    if (!m) {
        buf_release(body);
        return MHD_NO;
    }
    memset(body, 0, sizeof *body);
    common_headers(r, m, type);
    if (status == 429)
        MHD_add_response_header(m, "Retry-After", "1");
    if (status == 401)
        MHD_add_response_header(m, "WWW-Authenticate", "Bearer");
    enum MHD_Result res = MHD_queue_response(r->conn, (unsigned)status, m);
    MHD_destroy_response(m);
    r->responded = true;
    atomic_fetch_add(&r->s->metrics.responses[status / 100], 1);
    return res;
}

enum MHD_Result reply_error(struct request *r, int status, const char *type, const char *code,
                            const char *param, const char *fmt, ...)
{
    char text[RAD_ERR_TEXT];
    struct buf out = { 0 };
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    buf_adds(&out, "{\"error\":{\"message\":");
    buf_json(&out, text, strlen(text));
    buf_addf(&out, ",\"type\":\"%s\",\"param\":", type);
    if (param)
        buf_json(&out, param, strlen(param));
    else
        buf_adds(&out, "null");
    buf_addf(&out, code ? ",\"code\":\"%s\"}}" : ",\"code\":null}}", code);
    return reply(r, status, "application/json", &out);
}

static ssize_t read_stream(void *cls, uint64_t pos, char *to, size_t max)
{
    struct request *r = cls;
    (void)pos;
    pthread_mutex_lock(&r->lock);
    size_t n = r->out.len - r->out_at;
    bool end = r->left == 0, lost = r->out.failed || r->gone;
    if (n > max)
        n = max;
    if (n) {
        memcpy(to, r->out.s + r->out_at, n);
        r->out_at += n;
        if (r->out_at == r->out.len)
            r->out_at = r->out.len = 0;
    }
    pthread_mutex_unlock(&r->lock);
    if (lost)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (n)
        return (ssize_t)n;
    if (end)
        return MHD_CONTENT_READER_END_OF_STREAM;
    request_suspend(r);
    return 0;
}

static void free_stream(void *cls)
{
    request_unref(cls);
}

enum MHD_Result reply_stream(struct request *r)
{
    struct MHD_Response *m = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, read_stream,
                                                               request_ref(r), free_stream);
    if (!m) {
        request_unref(r);
        return MHD_NO;
    }
    common_headers(r, m, "text/event-stream");
    MHD_add_response_header(m, "Cache-Control", "no-cache");
    MHD_add_response_header(m, "X-Accel-Buffering", "no");
    enum MHD_Result res = MHD_queue_response(r->conn, 200, m);
    MHD_destroy_response(m);
    r->responded = true;
    atomic_fetch_add(&r->s->metrics.responses[2], 1);
    rewatch(r);
    return res;
}

/* ---- routes */
static enum MHD_Result health(struct request *r)
{
    struct rad_engine_stats st;
    struct buf out = { 0 };
    rad_engine_stats(r->s->r->engine, &st);
    buf_addf(&out, "{\"status\":\"%s\",\"model\":", r->s->stopping ? "stopping" : "ok");
    buf_json(&out, r->s->r->name, strlen(r->s->r->name));
    buf_addf(&out, ",\"in_flight\":%lld,\"queue_cap\":%lld}",
             (long long)(st.running + st.waiting), (long long)st.queue_cap);
    return reply(r, r->s->stopping ? 503 : 200, "application/json", &out);
}

static enum MHD_Result metrics(struct request *r)
{
    struct buf out = { 0 };
    metrics_text(r->s, &out);
    return reply(r, 200, "text/plain; version=0.0.4", &out);
}

static enum MHD_Result models(struct request *r) { return api_models(r, NULL); }
static enum MHD_Result chat(struct request *r) { return api_generate(r, API_CHAT); }
static enum MHD_Result completions(struct request *r) { return api_generate(r, API_COMPLETION); }

static const struct route {
    const char *method, *path;
    enum MHD_Result (*fn)(struct request *r);
    bool open;                         /* needs no key */
} route[] = {
    { "GET", "/health", health, true },
    { "GET", "/ping", health, true },
    { "GET", "/v1/models", models, false },
    { "POST", "/v1/chat/completions", chat, false },
    { "POST", "/v1/completions", completions, false },
    { "POST", "/tokenize", api_tokenize, false },
    { "POST", "/detokenize", api_detokenize, false },
    { "GET", "/metrics", metrics, false },
};

static bool authorised(const struct request *r)
{
    const char *key = r->s->http->api_key;
    const char *got = MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, "Authorization");
    if (!key)
        return true;
    static const char bearer[] = "Bearer ";
    return got && !strncmp(got, bearer, sizeof bearer - 1) &&
        strlen(got + sizeof bearer - 1) == strlen(key) &&
        CRYPTO_memcmp(got + sizeof bearer - 1, key, strlen(key)) == 0;
}

static enum MHD_Result preflight(struct request *r)
{
    struct MHD_Response *m = MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
    if (!m)
        return MHD_NO;
    common_headers(r, m, "text/plain");
    MHD_add_response_header(m, "Access-Control-Allow-Methods", "GET, POST, OPTIONS");
    MHD_add_response_header(m, "Access-Control-Allow-Headers", "Content-Type, Authorization");
    enum MHD_Result res = MHD_queue_response(r->conn, 204, m);
    MHD_destroy_response(m);
    atomic_fetch_add(&r->s->metrics.responses[2], 1);
    return res;
}

static enum MHD_Result dispatch(struct request *r, const char *method, const char *path)
{
    static const char one_model[] = "/v1/models/";
    bool known = false, get = !strcmp(method, "GET") || !strcmp(method, "HEAD");
    if (!strcmp(method, "OPTIONS") && r->s->http->cors)
        return preflight(r);
    for (size_t i = 0; i < sizeof route / sizeof *route; i++) {
        if (strcmp(route[i].path, path))
            continue;
        known = true;
        if (strcmp(route[i].method, get ? "GET" : method))
            continue;
        if (!route[i].open && !authorised(r))
            return reply_error(r, 401, "authentication_error", NULL, NULL,
                               "the API key is wrong or missing");
        return route[i].fn(r);
    }
    if (!strncmp(path, one_model, sizeof one_model - 1) && path[sizeof one_model - 1]) {
        if (!authorised(r))
            return reply_error(r, 401, "authentication_error", NULL, NULL,
                               "the API key is wrong or missing");
        if (get)
            return api_models(r, path + sizeof one_model - 1);
        known = true;
    }
    if (known)
        return reply_error(r, 405, "invalid_request_error", NULL, NULL,
                           "'%s' is no method of '%.200s'",
                           method, path);
    return reply_error(r, 404, "not_found_error", NULL, NULL, "there is no '%.200s' here", path);
}

/* ---- libmicrohttpd's callbacks */
static struct request *request_new(struct server *s, struct MHD_Connection *conn)
{
    struct request *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->s = s;
    r->conn = conn;
    atomic_init(&r->refs, 1);
    pthread_mutex_init(&r->lock, NULL);
    r->start_ns = cmd_now_ns();
    r->next_live = s->live;
    r->prev_live = &s->live;
    if (s->live)
        s->live->prev_live = &r->next_live;
    s->live = r;
    return r;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *conn, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **con_cls)
{
    struct server *s = cls;
    struct request *r = *con_cls;
    (void)version;
    if (!r) {
        struct conn *c = conn_of(conn);
        *con_cls = r = c ? request_new(s, conn) : NULL;
        if (r)
            c->r = r;
        return r ? MHD_YES : MHD_NO;
    }
    if (*size) {
        if ((int64_t)(r->body.len + *size) > s->http->max_body_bytes)
            r->body.failed = true;
        else
            buf_add(&r->body, data, *size);
        *size = 0;
        return MHD_YES;
    }
    if (r->responded)
        return MHD_YES;
    if (r->body.failed)
        return reply_error(r, 413, "invalid_request_error", NULL, NULL,
                           "the body is larger than %lld MiB",
                           (long long)(s->http->max_body_bytes >> 20));
    if (!r->body_done) {
        r->body_done = true;
        return dispatch(r, method, url);
    }
    if (r->gone)
        return MHD_NO;                 /* the client went away */
    if (all_done(r))
        return api_finish(r);
    request_suspend(r);
    return MHD_YES;
}

static void on_completed(void *cls, struct MHD_Connection *conn, void **con_cls,
                         enum MHD_RequestTerminationCode why)
{
    struct server *s = cls;
    struct request *r = *con_cls;
    struct conn *c = conn_of(conn);
    if (!r)
        return;
    *con_cls = NULL;
    if (c)
        c->r = NULL;
    if (r->submitted && !r->refused && !all_done(r)) {
        if (!r->gone)
            atomic_fetch_add(&s->metrics.disconnects, 1);
        cancel(r);
        rad_log(RAD_LOG_DEBUG, "http", "%s: the client went away (%d)", r->id, (int)why);
    }
    *r->prev_live = r->next_live;
    if (r->next_live)
        r->next_live->prev_live = r->prev_live;
    r->conn = NULL;
    request_unref(r);
}

static void on_connection(void *cls, struct MHD_Connection *m, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct server *s = cls;
    struct conn *c = *context;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *i =
            MHD_get_connection_info(m, MHD_CONNECTION_INFO_CONNECTION_FD);
        c = i ? calloc(1, sizeof *c) : NULL;
        if (c) {
            c->fd = i->connect_fd;
            watch(s, c, EPOLL_CTL_ADD);
        }
        *context = c;
    } else if (c) {
        epoll_ctl(s->epoll, EPOLL_CTL_DEL, c->fd, NULL);
        free(c);
        *context = NULL;
    }
}

/* ---- the loop */
static void on_gone(struct server *s, struct conn *c)
{
    struct request *r = c->r;
    if (r && r->submitted && !all_done(r)) {
        atomic_fetch_add(&s->metrics.disconnects, 1);
        cancel(r);
        pthread_mutex_lock(&r->lock);
        r->gone = true;
        pthread_mutex_unlock(&r->lock);
        request_resume(r);
    } else if (!c->ended) {
        c->ended = true;               /* let libmicrohttpd read what came before */
        watch(s, c, EPOLL_CTL_MOD);
    } else {
        /* Said to the socket again, the end makes an event that libmicrohttpd
         * reads; whole requests that it has are still answered. */
        shutdown(c->fd, SHUT_RD);
    }
}

/* Requests that deserve an answer: those that have come whole. */
static int n_work(const struct server *s)
{
    int n = 0;
    for (const struct request *r = s->live; r; r = r->next_live)
        n += r->body_done;
    return n;
}

static void take_ready(struct server *s)
{
    pthread_mutex_lock(&s->ready_lock);
    struct request *list = s->ready;
    s->ready = NULL;
    for (struct request *r = list; r; r = r->next_ready)
        r->ready = false;
    /* Until the lock is given back nobody can put them on a list again. */
    struct request *one[256];
    size_t n = 0;
    while (list) {
        one[n++] = list;
        list = list->next_ready;
        if (n == 256 && list) {
            s->ready = list;
            for (struct request *r = list; r; r = r->next_ready)
                r->ready = true;
            break;
        }
    }
    bool more = s->ready != NULL;
    pthread_mutex_unlock(&s->ready_lock);
    for (size_t i = 0; i < n; i++) {
        if (one[i]->streaming || all_done(one[i]))
            request_resume(one[i]);
        request_unref(one[i]);
    }
    uint64_t w = 1;
    if (more && write(s->wake, &w, sizeof w) < 0)
        rad_log(RAD_LOG_ERROR, "http", "cannot wake the server: %s", strerror(errno));
}

/* A comment line keeps proxies awake and finds dead clients. */
static void heartbeat(struct server *s)
{
    uint64_t now = cmd_now_ns();
    for (struct request *r = s->live; r; r = r->next_live) {
        if (!r->streaming || !r->suspended || now - r->heartbeat_ns < HEARTBEAT_MS * 1000000ull)
            continue;
        r->heartbeat_ns = now;
        pthread_mutex_lock(&r->lock);
        buf_adds(&r->out, ": keep-alive\n\n");
        pthread_mutex_unlock(&r->lock);
        request_resume(r);
    }
}

static void on_signal(int sig)
{
    uint64_t one = 1;
    int saved = errno;
    (void)sig;
    signals++;
    if (write(signal_fd, &one, sizeof one) < 0)
        signals++;
    errno = saved;
}

static void loop(struct server *s)
{
    uint64_t deadline = 0;
    struct epoll_event ev[64];
    for (;;) {
        if (signals && !s->stopping) {
            MHD_socket fd = MHD_quiesce_daemon(s->daemon);
            if (fd != MHD_INVALID_SOCKET)
                close(fd);
            s->stopping = true;
            deadline = cmd_now_ns() + (uint64_t)s->http->drain_ms * 1000000u;
            if (!cmd_quiet())
                cmd_warn("stopping: %d requests to finish", n_work(s));
        }
        if (s->stopping && (!n_work(s) || signals > 1 || cmd_now_ns() > deadline))
            return;
        MHD_UNSIGNED_LONG_LONG ms = TICK_MS;
        if (MHD_get_timeout(s->daemon, &ms) != MHD_YES || ms > TICK_MS)
            ms = TICK_MS;
        int n = epoll_wait(s->epoll, ev, 64, (int)ms);
        for (int i = 0; i < n; i++) {
            uint64_t junk;
            if (ev[i].data.ptr == &s->wake) {
                while (read(s->wake, &junk, sizeof junk) > 0)
                    continue;
            } else if (ev[i].data.ptr != s->daemon) {
                on_gone(s, ev[i].data.ptr);
            }
        }
        take_ready(s);
        heartbeat(s);
        if (MHD_run(s->daemon) != MHD_YES) {
            cmd_warn("the HTTP library failed");
            return;
        }
    }
}

__attribute__((format(printf, 2, 0)))
static void on_mhd_log(void *cls, const char *fmt, va_list ap)
{
    char text[512];
    (void)cls;
    vsnprintf(text, sizeof text, fmt, ap);
    text[strcspn(text, "\n")] = 0;
    rad_log(RAD_LOG_DEBUG, "http", "%s", text);
}

static void start(struct server *s)
{
    const struct radiance_http *h = s->http;
    char port[16];
    struct addrinfo hint = { .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV }, *a;
    snprintf(port, sizeof port, "%d", h->port);
    int rc = getaddrinfo(h->host, port, &hint, &a);
    if (rc)
        cmd_die("--host '%s': %s", h->host, gai_strerror(rc));
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    if (a->ai_family == AF_INET6)
        flags |= MHD_USE_IPv6;
    s->daemon = MHD_start_daemon(flags, (uint16_t)h->port, NULL, NULL, on_request, s,
        MHD_OPTION_EXTERNAL_LOGGER, on_mhd_log, NULL,
        MHD_OPTION_SOCK_ADDR, a->ai_addr,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)h->max_connections,
        MHD_OPTION_CONNECTION_TIMEOUT, 60u,
        MHD_OPTION_END);
    int why = errno;
    freeaddrinfo(a);
    if (!s->daemon)
        cmd_die("cannot listen at %s port %d: %s", h->host, h->port, strerror(why));
    const union MHD_DaemonInfo *fd = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event daemon = { .events = EPOLLIN, .data.ptr = s->daemon };
    struct epoll_event wake = { .events = EPOLLIN, .data.ptr = &s->wake };
    if (!fd || s->epoll < 0 || s->wake < 0 ||
        epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd->epoll_fd, &daemon) ||
        epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->wake, &wake))
        cmd_die("cannot watch connections: %s", strerror(errno));
}

int radiance_serve(const struct radiance *r, const struct radiance_http *h)
{
    static struct server s;
    s.r = r;
    s.http = h;
    pthread_mutex_init(&s.ready_lock, NULL);
    pthread_mutex_init(&s.metrics.lock, NULL);
    start(&s);
    signal_fd = s.wake;
    struct sigaction sa = { .sa_handler = on_signal };
    sigemptyset(&sa.sa_mask);
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGINT, &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    const union MHD_DaemonInfo *p = MHD_get_daemon_info(s.daemon, MHD_DAEMON_INFO_BIND_PORT);
    if (!cmd_quiet())
        cmd_warn("'%s' at http://%s%s%s:%d", r->name, strchr(h->host, ':') ? "[" : "", h->host,
                 strchr(h->host, ':') ? "]" : "", p ? (int)p->port : h->port);
    loop(&s);
    /* What is left: cancelled, answered as far as it goes, closed. */
    int left = n_work(&s);
    struct rad_err err = { 0 };
    for (struct request *q = s.live; q; q = q->next_live) {
        cancel(q);
        pthread_mutex_lock(&q->lock);
        q->gone = true;
        pthread_mutex_unlock(&q->lock);
        request_resume(q);
    }
    if (left && !cmd_quiet())
        cmd_warn("%d requests were cut off", left);
    if (rad_engine_drain(r->engine, 5000, &err) && !cmd_quiet())
        cmd_warn("%s", err.text);
    MHD_run(s.daemon);
    MHD_stop_daemon(s.daemon);
    take_ready(&s);
    close(s.epoll);
    return CMD_OK;
}
