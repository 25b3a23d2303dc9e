// sibyl::Communicator: an all-reduce up to 16 KiB by recursive doubling; of more than 4 ranks, up to 64 KiB for each, by
// Rabenseifner; else by ring. Of all else it has one algorithm.
#include <array>

#include "netmodel/collective/choice/rules.h"

namespace sibyl::collective {
namespace {
namespace communicator {

using enum Collective;
constexpr std::int64_t any_size = ChoiceRule::any_size;
constexpr int any_ranks = ChoiceRule::any_ranks;
constexpr std::array rules{
    of_all(all_reduce, any_ranks, 16 * kib, Algorithm::recursive_doubling),
    of_all(all_reduce, 4, any_size, Algorithm::ring),
    of_parts(all_reduce, any_ranks, 64 * kib, Algorithm::rabenseifner),
    of_all(all_reduce, any_ranks, any_size, Algorithm::ring),
    of_all(reduce_scatter, any_ranks, any_size, Algorithm::ring),
    of_all(all_gather, any_ranks, any_size, Algorithm::ring),
    of_all(broadcast, any_ranks, any_size, Algorithm::tree),
    of_all(reduce, any_ranks, any_size, Algorithm::tree),
    of_all(all_to_all, any_ranks, any_size, Algorithm::ring),
    of_all(send_receive, any_ranks, any_size, Algorithm::ring)};

}  // namespace communicator
}  // namespace

Rules sibyl_rules() { return communicator::rules; }

}  // namespace sibyl::collective
