/* SPDX-License-Identifier: Apache-2.0 */
/* Token ids of one output to the text a client sees: detokenised, cut before
 * a stop string, with whatever may still become one held back. */
#include "config.h"

#include <rad/engine.h>

#include "base/base.h"

#include "banned.h"

struct rad_text {
    struct rad_detok *detok;
    char **stop;
    size_t *stop_len;
    int n_stop;
    int hit;                     /* index of the stop string found, or -1 */
    struct rad_tok_text pending; /* detokenised, not emitted yet */
    size_t emitted;              /* of pending, by the last call */
};

rad_status rad_text_new(const struct rad_tokenizer *t, const char *const *stop, int n_stop,
                        int skip_special, struct rad_text **out, struct rad_err *err)
{
    *out = NULL;
    struct rad_text *x = radi_calloc(1, sizeof *x);
    rad_status st = RAD_OK;
    if (!x)
        return rad_fail(err, RAD_E_NOMEM, "text: out of memory");
    x->hit = -1;
    size_t n = n_stop > 0 ? (size_t)n_stop : 0;
    x->stop = radi_calloc(n + 1, sizeof *x->stop);
    x->stop_len = radi_calloc(n + 1, sizeof *x->stop_len);
    if (!x->stop || !x->stop_len)
        st = rad_fail(err, RAD_E_NOMEM, "text: out of memory");
    for (size_t i = 0; !st && i < n; i++) {
        if (!stop[i][0]) {
            st = rad_fail(err, RAD_E_ARG, "stop string %zu is empty", i);
            break;
        }
        x->stop[i] = radi_strdup(stop[i]);
        x->stop_len[i] = strlen(stop[i]);
        x->n_stop = (int)i + 1;
        if (!x->stop[i])
            st = rad_fail(err, RAD_E_NOMEM, "text: out of memory");
    }
    if (!st)
        st = rad_detok_new(t, skip_special ? RAD_TOK_SKIP_SPECIAL : 0, &x->detok, err);
    if (st) {
        rad_text_free(x);
        return st;
    }
    *out = x;
    return RAD_OK;
}

void rad_text_free(struct rad_text *t)
{
    if (!t)
        return;
    rad_detok_free(t->detok);
    for (int i = 0; t->stop && i < t->n_stop; i++)
        radi_free(t->stop[i]);
    radi_free(t->stop);
    radi_free(t->stop_len);
    rad_tok_text_release(&t->pending);
    radi_free(t);
}

/* Drops what the last call emitted. */
static void advance(struct rad_text *t)
{
    if (t->emitted)
        memmove(t->pending.s, t->pending.s + t->emitted, t->pending.len - t->emitted + 1);
    t->pending.len -= t->emitted;
    t->emitted = 0;
}

/* Earliest stop string in pending, the longest of those at one place. */
static bool find_stop(struct rad_text *t, size_t *at)
{
    bool found = false;
    for (int i = 0; i < t->n_stop; i++) {
        if (t->pending.len < t->stop_len[i])
            continue;
        const char *p = memmem(t->pending.s, t->pending.len, t->stop[i], t->stop_len[i]);
        if (!p)
            continue;
        size_t k = (size_t)(p - t->pending.s);
        if (found && (k > *at || (k == *at && t->stop_len[i] <= t->stop_len[t->hit])))
            continue;
        *at = k;
        t->hit = i;
        found = true;
    }
    return found;
}

/* Length of the longest end of pending that begins some stop string. */
static size_t held(const struct rad_text *t)
{
    size_t best = 0;
    for (int i = 0; i < t->n_stop; i++) {
        size_t most = RADI_MIN(t->stop_len[i] - 1, t->pending.len);
        for (size_t n = most; n > best; n--)
            if (!memcmp(t->pending.s + t->pending.len - n, t->stop[i], n)) {
                best = n;
                break;
            }
    }
    return best;
}

rad_status rad_text_push(struct rad_text *t, int32_t id, const char **delta, size_t *n,
                         int *stopped, struct rad_err *err)
{
    *delta = "";
    *n = 0;
    *stopped = t->hit >= 0;
    if (*stopped)
        return RAD_OK;
    advance(t);
    RAD_TRY(rad_detok_push(t->detok, id, &t->pending, err));
    if (!t->pending.len)
        return RAD_OK;
    size_t at;
    if (find_stop(t, &at)) {
        *stopped = 1;
        t->emitted = at;
    } else {
        t->emitted = t->pending.len - held(t);
    }
    *delta = t->pending.s;
    *n = t->emitted;
    return RAD_OK;
}

rad_status rad_text_finish(struct rad_text *t, const char **delta, size_t *n, struct rad_err *err)
{
    *delta = "";
    *n = 0;
    if (t->hit >= 0)
        return RAD_OK;
    advance(t);
    RAD_TRY(rad_detok_finish(t->detok, &t->pending, err));
    if (!t->pending.len)
        return RAD_OK;
    size_t at;
    t->emitted = find_stop(t, &at) ? at : t->pending.len;
    *delta = t->pending.s;
    *n = t->emitted;
    return RAD_OK;
}

const char *rad_text_stop_reason(const struct rad_text *t)
{
    return t->hit >= 0 ? t->stop[t->hit] : NULL;
}
