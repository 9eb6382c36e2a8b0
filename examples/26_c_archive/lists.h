/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LISTS_H
#define LISTS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Sums the nodes of one list a thread: 0 + 1 + ... + 9 of each. Returns a cudaError_t. */
int sum_lists(unsigned threads, unsigned long long* sum);

#ifdef __cplusplus
}
#endif

#endif
