/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Test certificates: an authority, an intermediate, and leaves that are valid or invalid in one way
 * each. They are created by the first call, in memory and as files in a folder that is removed when
 * the process exits.
 *
 *      authority -> intermediate -> server, other, rsa, expired, ...
 *
 * All keys are P-256, but for those of pki_rsa, which take a while.
 */
#ifndef WEIR_TEST_PKI_H
#define WEIR_TEST_PKI_H

#define PKI_PASSPHRASE "correct horse"

/* A certificate with its chain, and its key: as PEM, and as files. */
struct pki_leaf {
    const char *certificate;
    const char *key;
    const char *certificate_file;
    const char *key_file;
};

struct pki {
    const char *folder; /* tests may put files of their own there */

    const char *ca; /* to be trusted */
    const char *ca_file;
    const char *strange_ca; /* not to be trusted */
    const char *strange_ca_file;

    struct pki_leaf intermediate;   /* issues the leaves */
    struct pki_leaf server;         /* localhost, 127.0.0.1, ::1, example.test */
    struct pki_leaf renewed;        /* the same names, another key */
    struct pki_leaf stapled;        /* the same, and it demands an OCSP response with it */
    struct pki_leaf encrypted;      /* the same, its key with PKI_PASSPHRASE */
    struct pki_leaf other;          /* other.test, *.wild.test */
    struct pki_leaf wrong_host;     /* wrong.test */
    struct pki_leaf expired;        /* localhost, as all that follow; since yesterday */
    struct pki_leaf future;         /* not before tomorrow */
    struct pki_leaf self_signed;    /* by itself */
    struct pki_leaf stranger;       /* by the strange authority */
    struct pki_leaf client;         /* CN=client, for clients only */
    struct pki_leaf strange_client; /* the same by the strange authority */
};

/* The test's thread, as long as it is the only one that asks. Never NULL. */
const struct pki *pki(void);

/* As the server's, with RSA keys of 2048 bits. */
const struct pki_leaf *pki_rsa(void);

#endif
