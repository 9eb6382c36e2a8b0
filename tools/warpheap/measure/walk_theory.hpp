// SPDX-License-Identifier: Apache-2.0
// How many steps a search for a free page takes, in theory: N threads each take one of the A free
// pages among T, by a queue, by looking at random pages (RW), at random words of w pages (RW-BM),
// or in warps of k lanes that share what they find in k random words (CoRW). TAS is the mean over
// threads, WAS the mean over warps of the most that a lane takes.
//
// With x_j = (A - j)/T free after j pages were taken:
//
//   queue   TAS = (N+1)/2,  WAS = k (N+1)/(k+1), lane by lane; (N + N/W)/2, W whole warps
//   RW      TAS = U  = (1/N) sum 1/x_j = (T/N) (H_A - H_{A-N})
//           WAS = V  = E max of k geometric(1-q), q = 1 - (A-N+1)/T
//   RW-BM   TAS = U' = (1/N) sum 1/(1 - (1-x_j)^w)
//           WAS = V' = V with q^w
//   CoRW    TAS = WAS = the steps m until k w m random pages hold k free ones, the mean over warps
//
// U is exact, however the threads run side by side. V and V' are bounds, because q is the worst
// one. U' is near, because a word that was emptied stays empty for later looks: simulation exceeds
// it by 0 to 2% at N = A/10, and by up to a half at N = A. The paper's theorem, in the limit
// of A near N, says that U/U' is up to w. What holds is 1 <= U/U' <= w, and that U/U' tends to w
// as A/T vanishes.
//
// Source: Pham et al. 2022, equations (1) to (5). Differs: V is a sum over steps in place of the
// alternating one, which loses all its digits at k = 32; A - N + 1 replaces the paper's A - N, with
// which the bound is infinite at N = A. CoRW and the queue of whole warps: ours.
#pragma once

#include <cmath>

#include "warpheap/platform/types.hpp"

namespace warpheap::walk_theory {

/// Pages in all, free ones, and threads that take one each; threads <= free.
struct pages {
  double total, free, threads;
};

/// 1 + 1/2 + ... + 1/n.
inline double harmonic(double n) {
  if (n < 1) return 0;
  if (n > 256) return std::log(n) + 0.5772156649015328606 + 1 / (2 * n) - 1 / (12 * n * n);
  double sum = 0;
  for (double i = n; i >= 1; --i) sum += 1 / i;
  return sum;
}

/// The mean of the largest of `lanes` numbers of steps. Each number is geometric: every step is the
/// last with probability 1 - q.
inline double largest_of(double q, u32 lanes) {
  if (q <= 0) return 1;
  // the sum below, by Euler and Maclaurin
  if (-std::log(q) < 1e-3) return harmonic(lanes) / -std::log(q) + 0.5;
  double sum = 0, power = 1;
  for (double rest = 1; rest > 1e-13; power *= q) {
    rest = -std::expm1(lanes * std::log1p(-power * (1 - 1e-16)));
    sum += rest;
  }
  return sum;
}

/// The steps of a thread in a queue are its place in it, 1 to N. Their mean is (N+1)/2, in whatever
/// order threads come.
inline double queue_thread_steps(double threads) { return (threads + 1) / 2; }

/// WAS of a queue to which lanes come one by one: the mean of the largest of k different numbers
/// from 1 to N, all equally likely.
inline double queue_warp_steps(double threads, u32 lanes = 32) { return lanes * (threads + 1) / (lanes + 1); }

/// WAS of a queue to which warps come as a whole, so that their lanes have consecutive places, as
/// with one addition a warp. The last place of a warp of s lanes is s plus the lanes of the warps
/// before it. Each other warp is before it as often as behind it, so the mean is s + (N - s)/2 = (N
/// + s)/2. The mean of s over W = ceil(N/k) warps is N/W.
inline double queue_warp_steps_together(double threads, u32 lanes = 32) {
  return (threads + threads / std::ceil(threads / lanes)) / 2;
}

/// U, and the bound V.
inline double page_thread_steps(pages of) {
  return of.total / of.threads * (harmonic(of.free) - harmonic(of.free - of.threads));
}
inline double page_warp_steps(pages of, u32 lanes = 32) {
  return largest_of(1 - (of.free - of.threads + 1) / of.total, lanes);
}

/// U', and the bound V'.
inline double word_thread_steps(pages of, u32 word_pages = 32) {
  double sum = 0;
  for (double j = 0; j < of.threads; ++j) sum += 1 / -std::expm1(word_pages * std::log1p(-(of.free - j) / of.total));
  return sum / of.threads;
}
inline double word_warp_steps(pages of, u32 word_pages = 32, u32 lanes = 32) {
  return largest_of(std::pow(1 - (of.free - of.threads + 1) / of.total, word_pages), lanes);
}

/// The steps of a warp that looks at `lanes` random words together until it has found a free page
/// for each lane. A share of `free` of all pages is free.
inline double together_steps_at(double free, u32 word_pages, u32 lanes) {
  double steps = 0;
  for (double looked = 0;; looked += lanes * word_pages) {
    // P(fewer than `lanes` free ones among `looked`), term by term.
    double term = looked * std::log1p(-free), fewer = 0;
    for (u32 found = 0; found < lanes && found <= looked; ++found) {
      fewer += std::exp(term);
      term += std::log((looked - found) / (found + 1)) + std::log(free) - std::log1p(-free);
    }
    steps += fewer < 1 ? fewer : 1;
    if (fewer < 1e-12) return steps;
  }
}

/// The mean of those steps over the warps of all threads, which come one after the other.
inline double together_steps(pages of, u32 word_pages = 32, u32 lanes = 32) {
  double const warps = std::ceil(of.threads / lanes), sample = warps < 256 ? warps : 256;
  double sum = 0;
  for (double i = 0; i < sample; ++i) {
    double const left = of.free - lanes * std::floor((i + 0.5) * warps / sample);
    double const share = left / of.total;
    sum += together_steps_at(share < 0.999999 ? share : 0.999999, word_pages, lanes);
  }
  return sum / sample;
}

/// Pairs of threads whose first look is at the same page; and pairs for which that page is free.
inline double colliding_pairs(pages of) { return of.threads * (of.threads - 1) / (2 * of.total); }
inline double colliding_pairs_on_free_pages(pages of) { return colliding_pairs(of) * of.free / of.total; }

}  // namespace warpheap::walk_theory
