/* SPDX-License-Identifier: Apache-2.0 */
/* Owns SHA-256; the arithmetic is libcrypto's. */
#include "config.h"

#include <openssl/evp.h>

#include "base/base.h"

#include "banned.h"

rad_status radi_sha256_begin(struct radi_sha256 *h, struct rad_err *err)
{
    h->ctx = EVP_MD_CTX_new();
    if (!h->ctx)
        return rad_fail(err, RAD_E_NOMEM, "out of memory for a digest");
    if (EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(h->ctx);
        h->ctx = NULL;
        return rad_fail(err, RAD_E_UNSUPPORTED, "libcrypto offers no SHA-256");
    }
    return RAD_OK;
}

void radi_sha256_add(struct radi_sha256 *h, const void *p, size_t n)
{
    RADI_BUG_IF(!h->ctx);
    /* fails only on a context that was never begun */
    RADI_BUG_IF(n && EVP_DigestUpdate(h->ctx, p, n) != 1);
}

void radi_sha256_end(struct radi_sha256 *h, uint8_t out[32])
{
    uint8_t unused[32];
    if (!h->ctx)
        return;
    RADI_BUG_IF(EVP_DigestFinal_ex(h->ctx, out ? out : unused, NULL) != 1);
    EVP_MD_CTX_free(h->ctx);
    h->ctx = NULL;
}

rad_status radi_sha256_of(const void *p, size_t n, uint8_t out[32],
                          struct rad_err *err)
{
    struct radi_sha256 h;
    RAD_TRY(radi_sha256_begin(&h, err));
    radi_sha256_add(&h, p, n);
    radi_sha256_end(&h, out);
    return RAD_OK;
}
