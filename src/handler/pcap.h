/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture file, packet by packet.
 */
#ifndef WEIR_HANDLER_PCAP_H
#define WEIR_HANDLER_PCAP_H

#include <weir/pcap.h>

#define WEIR__PCAP_PACKET_MAX 65535

/*
 * Where to write the next packet of so many bytes, WEIR__PCAP_PACKET_MAX at the most, each of which
 * has to be written; nobody else can until weir__pcap_end. NULL if it is left out: then there is no
 * end.
 */
uint8_t *weir__pcap_begin(weir_pcap *pcap, size_t length);
void weir__pcap_end(weir_pcap *pcap);

#endif
