/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of a container and their signature (rad(5), "Integrity section").
 *
 * Every byte of a file is answered for: tables and planes by a digest, the
 * digests by the root, the root by the signature, and what lies between them
 * by having to be zero. The section itself is laid out by container_write.c
 * and parsed by container_read.c. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/pem.h>

#include "format/container.h"
#include "banned.h"

const char *const radi_table_name[RADI_T_COUNT] = {
    [RADI_T_HEADER] = "header",       [RADI_T_STRINGS] = "strings",
    [RADI_T_META] = "metadata",       [RADI_T_DIR] = "directory",
    [RADI_T_PLANES] = "planes",       [RADI_T_ENCODINGS] = "encodings",
    [RADI_T_VOCAB] = "vocab",         [RADI_T_PROFILE] = "profile",
    [RADI_T_CERT] = "certificate",
};

/* Products cannot overflow: the header was validated, or is our own plan. */
void radi_table_spans(const struct radi_rad_header *h, struct rad_section out[RADI_T_COUNT])
{
    const struct rad_section t[RADI_T_COUNT] = {
        [RADI_T_HEADER] = { 0, sizeof *h, 1 },
        [RADI_T_STRINGS] = { h->str_off, h->str_bytes, 0 },
        [RADI_T_META] = { h->meta_off, h->meta_count * sizeof(struct radi_rad_meta), 0 },
        [RADI_T_DIR] = { h->dir_off, h->dir_count * sizeof(struct radi_rad_entry), 0 },
        [RADI_T_PLANES] = { h->plane_off, h->plane_count * sizeof(struct radi_rad_plane), 0 },
        [RADI_T_ENCODINGS] = { h->enc_off, h->enc_count * sizeof(RadEncoding), 0 },
        [RADI_T_VOCAB] = { h->vocab_off, h->vocab_bytes, 0 },
        [RADI_T_PROFILE] = { h->prof_off, h->prof_count * sizeof(struct rad_profile_row), 0 },
        [RADI_T_CERT] = { h->cert_off, h->cert_bytes, 0 },
    };

    memcpy(out, t, sizeof t);
}

static rad_status root_of(const struct radi_rad_integrity *head, const uint8_t *digests,
                          size_t n_digests, uint8_t root[32], struct rad_err *err)
{
    struct radi_sha256 h;

    RAD_TRY(radi_sha256_begin(&h, err));
    radi_sha256_add(&h, head, RADI_INT_ROOTED);
    radi_sha256_add(&h, digests, n_digests * RADI_DIGEST);
    radi_sha256_end(&h, root);
    return RAD_OK;
}

/* ---- Ed25519 */

/* An encrypted key would make libcrypto ask on the terminal; refuse instead. */
static int no_passphrase(char *buf, int n, int writing, void *user)
{
    (void)buf;
    (void)n;
    (void)writing;
    (void)user;
    return -1;
}

static rad_status read_key(const char *pem, bool private, EVP_PKEY **out, struct rad_err *err)
{
    size_t n = strlen(pem);
    BIO *bio = n > 65536 ? NULL : BIO_new_mem_buf(pem, (int)n);

    *out = NULL;
    if (!bio)
        return rad_fail(err, RAD_E_ARG, "key: %zu bytes of PEM, want at most 65536", n);
    *out = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
    if (!*out && !private) {
        (void)BIO_reset(bio);
        *out = PEM_read_bio_PUBKEY(bio, NULL, no_passphrase, NULL);
    }
    BIO_free(bio);
    if (!*out)
        return rad_fail(err, RAD_E_ARG, "key: not an unencrypted %s key in PEM form",
                        private ? "private" : "public or private");
    if (EVP_PKEY_get_base_id(*out) != EVP_PKEY_ED25519) {
        EVP_PKEY_free(*out);
        *out = NULL;
        return rad_fail(err, RAD_E_ARG, "key: not an Ed25519 key");
    }
    return RAD_OK;
}

rad_status radi_integrity_check_key(const char *pem, struct rad_err *err)
{
    EVP_PKEY *key;

    RAD_TRY(read_key(pem, true, &key, err));
    EVP_PKEY_free(key);
    return RAD_OK;
}

static rad_status sign_root(struct radi_rad_integrity *head, const char *pem,
                            struct rad_err *err)
{
    EVP_PKEY *key;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    size_t n_sig = sizeof head->signature, n_key = sizeof head->key;
    rad_status st = read_key(pem, true, &key, err);

    if (!st && (!ctx || EVP_DigestSignInit(ctx, NULL, NULL, NULL, key) != 1
                || EVP_DigestSign(ctx, head->signature, &n_sig, head->root,
                                  sizeof head->root) != 1
                || EVP_PKEY_get_raw_public_key(key, head->key, &n_key) != 1))
        st = rad_fail(err, RAD_E_NOMEM, "signature: libcrypto could not sign");
    if (!st)
        head->signature_kind = RADI_INT_ED25519;
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    return st;
}

static bool signature_ok(const struct radi_rad_integrity *head, EVP_PKEY *key)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key) == 1
        && EVP_DigestVerify(ctx, head->signature, sizeof head->signature, head->root,
                            sizeof head->root) == 1;

    EVP_MD_CTX_free(ctx);
    return ok;
}

rad_status radi_integrity_seal(struct radi_rad_integrity *head, const uint8_t *digests,
                               size_t n_digests, const char *pem, struct rad_err *err)
{
    RAD_TRY(root_of(head, digests, n_digests, head->root, err));
    return pem ? sign_root(head, pem, err) : RAD_OK;
}

/* ---- verification */

/* By windows, whose pages are given back: the file may be larger than memory. */
static rad_status check_digest(const struct rad_model *m, const void *p, uint64_t n,
                               const uint8_t *want, bool *same, struct rad_err *err)
{
    enum { WINDOW = 16 << 20 };
    uint8_t got[RADI_DIGEST];
    struct radi_sha256 h;

    RAD_TRY(radi_sha256_begin(&h, err));
    for (uint64_t at = 0; at < n; at += WINDOW) {
        const uint8_t *w = (const uint8_t *)p + at;
        size_t len = (size_t)RADI_MIN(n - at, (uint64_t)WINDOW);

        radi_sha256_add(&h, w, len);
        radi_filemap_drop(&m->map, w, len);
    }
    radi_sha256_end(&h, got);
    *same = memcmp(got, want, sizeof got) == 0;
    return RAD_OK;
}

static rad_status verify_planes(const struct rad_model *m, const uint8_t *digest,
                                struct rad_verify_report *r, struct rad_err *err)
{
    for (size_t i = 0; i < m->head.dir_count; i++) {
        const struct rad_weight *w = &m->weight[i];

        for (uint32_t k = 0; k < w->n_planes; k++) {
            const struct rad_plane *p = &w->plane[k];
            bool same;

            RAD_TRY(check_digest(m, p->data, p->bytes, digest + (p - m->plane) * RADI_DIGEST,
                                 &same, err));
            if (!same)
                return rad_fail(err, RAD_E_MISMATCH, "weight '%s': plane '%s': digest differs",
                                w->name, w->enc->plane[k].role);
            r->planes++;
            r->bytes += p->bytes;
        }
    }
    return RAD_OK;
}

struct range {
    uint64_t at, end;
};

static int by_start(const void *a, const void *b)
{
    const struct range *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

/* What no digest covers must be zero. */
static rad_status verify_padding(const struct rad_model *m, const struct rad_section *table,
                                 struct rad_err *err)
{
    size_t n = 0, cap = RADI_T_COUNT + 1;
    struct range *r;
    uint64_t at = 0;
    rad_status st = RAD_OK;

    for (size_t i = 0; i < m->head.dir_count; i++)
        cap += m->weight[i].n_planes;
    r = radi_calloc(cap, sizeof *r);
    if (!r)
        return rad_fail(err, RAD_E_NOMEM, "padding: %zu ranges", cap);
    for (size_t i = 0; i < RADI_T_COUNT; i++)
        r[n++] = (struct range){ table[i].offset, table[i].offset + table[i].bytes };
    r[n++] = (struct range){ m->head.integrity_off,
                             m->head.integrity_off + m->head.integrity_bytes };
    for (size_t i = 0; i < m->head.dir_count; i++)
        for (uint32_t k = 0; k < m->weight[i].n_planes; k++) {
            const struct rad_plane *p = &m->weight[i].plane[k];

            r[n++] = (struct range){ p->offset, p->offset + p->bytes };
        }
    qsort(r, n, sizeof *r, by_start);
    for (size_t i = 0; i <= n && !st; i++) {
        uint64_t end = i < n ? r[i].at : m->head.file_bytes;

        for (; at < end; at++)
            if (m->data[at]) {
                st = rad_fail(err, RAD_E_MISMATCH, "padding: byte %llu is 0x%02x, want 0",
                              (unsigned long long)at, m->data[at]);
                break;
            }
        if (i < n && r[i].end > at)
            at = r[i].end;
    }
    radi_free(r);
    if (!st && m->real_size != m->head.file_bytes)
        st = rad_fail(err, RAD_E_MISMATCH, "%llu bytes behind the end of the container",
                      (unsigned long long)(m->real_size - m->head.file_bytes));
    return st;
}

static rad_status verify_signature(const struct radi_rad_integrity *head,
                                   struct rad_verify_report *r, struct rad_err *err)
{
    static const uint8_t none[sizeof head->signature];

    if (!head->signature_kind) {
        if (memcmp(head->key, none, sizeof head->key)
            || memcmp(head->signature, none, sizeof head->signature))
            return rad_fail(err, RAD_E_MISMATCH, "signature: kind 0, but bytes are not zero");
        return RAD_OK;
    }
    EVP_PKEY *key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, head->key,
                                                sizeof head->key);
    bool ok = key && signature_ok(head, key);
    EVP_PKEY_free(key);
    if (!ok)
        return rad_fail(err, RAD_E_MISMATCH, "signature: not of this root by the key stated");
    r->signature = 1;
    return RAD_OK;
}

static rad_status read_section(const struct rad_model *m, struct radi_rad_integrity *head,
                               const uint8_t **digests, struct rad_err *err)
{
    const uint8_t *p = m->data + m->head.integrity_off;

    if (!m->has_integrity)
        return rad_fail(err, RAD_E_NOTFOUND, "the file carries no digests");
    memcpy(head, p, sizeof *head);
    *digests = p + sizeof *head;
    return RAD_OK;
}

/* That the digests are those which the root was made of. */
static rad_status check_root(const struct radi_rad_integrity *head, const uint8_t *digests,
                             struct rad_err *err)
{
    uint8_t root[RADI_DIGEST];

    RAD_TRY(root_of(head, digests, (size_t)(head->n_tables + head->n_planes), root, err));
    if (memcmp(root, head->root, sizeof root))
        return rad_fail(err, RAD_E_MISMATCH, "integrity: root digest differs");
    return RAD_OK;
}

rad_status rad_model_verify(const struct rad_model *m, struct rad_verify_report *report,
                            struct rad_err *err)
{
    struct rad_verify_report mine, *r = report ? report : &mine;
    struct rad_section table[RADI_T_COUNT];
    struct radi_rad_integrity head;
    const uint8_t *digest = NULL;

    memset(r, 0, sizeof *r);
    r->size = sizeof *r;
    RAD_TRY(read_section(m, &head, &digest, err));
    RAD_TRY(check_root(&head, digest, err));
    RAD_TRY(verify_signature(&head, r, err));
    if (head.n_planes != m->head.plane_count)
        return rad_fail(err, RAD_E_MISMATCH, "integrity: digests of %llu planes, the file has"
                        " %llu", (unsigned long long)head.n_planes,
                        (unsigned long long)m->head.plane_count);
    radi_table_spans(&m->head, table);
    for (size_t i = 0; i < RADI_T_COUNT; i++) {
        bool same;

        RAD_TRY(check_digest(m, m->data + table[i].offset, table[i].bytes,
                             digest + i * RADI_DIGEST, &same, err));
        if (!same)
            return rad_fail(err, RAD_E_MISMATCH, "table '%s': digest differs",
                            radi_table_name[i]);
        r->tables++;
        r->bytes += table[i].bytes;
    }
    RAD_TRY(verify_planes(m, digest + RADI_T_COUNT * RADI_DIGEST, r, err));
    return verify_padding(m, table, err);
}

rad_status rad_model_verify_signature(const struct rad_model *m, const char *pem,
                                      struct rad_err *err)
{
    struct radi_rad_integrity head;
    const uint8_t *digests = NULL;
    EVP_PKEY *key;

    RAD_TRY(read_section(m, &head, &digests, err));
    if (!head.signature_kind)
        return rad_fail(err, RAD_E_MISMATCH, "signature: the file is not signed");
    RAD_TRY(check_root(&head, digests, err));
    RAD_TRY(read_key(pem, false, &key, err));
    bool ok = signature_ok(&head, key);
    EVP_PKEY_free(key);
    return ok ? RAD_OK : rad_fail(err, RAD_E_MISMATCH, "signature: not by this key");
}

rad_status rad_model_sign(const char *path, const char *pem, struct rad_err *err)
{
    struct rad_model *m;
    struct radi_rad_integrity head;
    const uint8_t *digests = NULL;
    rad_status st;
    int fd = -1;

    RAD_TRY(rad_model_open(path, &m, err));
    st = read_section(m, &head, &digests, err);
    if (!st)
        st = check_root(&head, digests, err);
    if (!st)
        st = sign_root(&head, pem, err);
    if (st) {
        st = rad_fail_in(err, st, "'%s'", path);
        goto out;
    }
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || pwrite(fd, &head, sizeof head, (off_t)m->head.integrity_off)
                      != (ssize_t)sizeof head || fsync(fd))
        st = rad_fail_errno(err, "'%s': signature", path);
out:
    if (fd >= 0 && close(fd) && !st)
        st = rad_fail_errno(err, "'%s': signature", path);
    rad_model_unref(m);
    return st;
}
