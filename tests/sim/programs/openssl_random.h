/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The randomness of OpenSSL in a world: drawn from the seed, so that handshakes repeat. For the
 * length of a world; never outside of tests.
 *
 * What OpenSSL takes from the real clock does not change the lengths of what is sent: the age of a
 * session in a hello, the time in a ticket, and the check of certificates, which are valid for a
 * century. The decisions of weir itself about sessions are made by the clock of the world.
 */
#ifndef SIM_OPENSSL_RANDOM_H
#define SIM_OPENSSL_RANDOM_H

void sim_openssl_random_begin(void);
void sim_openssl_random_end(void);

#endif
