// MPICH's choices by size, as Thakur, Rabenseifner and Gropp derived them (2005) and MPICH 3 has them by default:
//   all-reduce: up to 2 KiB recursive doubling, else Rabenseifner;
//   all-gather: below 512 KiB of powers of two recursive doubling, below 80 KiB Bruck, else ring;
//   reduce-scatter: below 512 KiB recursive halving, else pairs, which send what a ring sends;
//   broadcast: below 12 KiB, or of less than 8 ranks, a binomial tree, else a scatter and an all-gather, which send each
//   byte about twice: the nearest here is the tree in chunks. a reduction up to 2 KiB binomial, else likewise;
//   all-to-all: up to 256 B for each of 8 ranks or more Bruck, up to 32 KiB all at once, else pair by pair.
#include <array>

#include "netmodel/collective/choice/rules.h"

namespace sibyl::collective {
namespace {
namespace mpich {

using enum Collective;
using enum Algorithm;
constexpr std::int64_t any_size = ChoiceRule::any_size;
constexpr int any_ranks = ChoiceRule::any_ranks, too_few_for_bruck = 7;
constexpr std::array rules{
    of_all(all_reduce, any_ranks, 2 * kib, recursive_doubling),
    of_all(all_reduce, any_ranks, any_size, rabenseifner),
    ChoiceRule{all_gather, any_ranks, 512 * kib - 1, halving_doubling, ChoiceRule::Of::buffer, true},
    of_all(all_gather, any_ranks, 80 * kib - 1, bruck),
    of_all(all_gather, any_ranks, any_size, ring),
    of_all(reduce_scatter, any_ranks, 512 * kib - 1, halving_doubling),
    of_all(reduce_scatter, any_ranks, any_size, ring),
    of_all(broadcast, 7, any_size, binomial),
    of_all(broadcast, any_ranks, 12 * kib - 1, binomial),
    of_all(broadcast, any_ranks, any_size, tree),
    of_all(reduce, any_ranks, 2 * kib, binomial),
    of_all(reduce, any_ranks, any_size, tree),
    of_parts(all_to_all, too_few_for_bruck, 32 * kib, ring),
    of_parts(all_to_all, any_ranks, 256, bruck),
    of_parts(all_to_all, any_ranks, 32 * kib, ring),
    of_all(all_to_all, any_ranks, any_size, pairwise),
    of_all(send_receive, any_ranks, any_size, ring)};

}  // namespace mpich
}  // namespace

Rules mpich_rules() { return mpich::rules; }

}  // namespace sibyl::collective
