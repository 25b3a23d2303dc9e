// Gloo: chunked rings for all-reduces, binomial trees for broadcasts (collective/gloo.cpp), rings for all-gathers,
// recursive halving for reduce-scatters, all pairs at once for all-to-alls.
//
// The first two are what collective/gloo.cpp models; the others were not checked against the library's source.
#include <array>

#include "netmodel/collective/choice/rules.h"

namespace sibyl::collective {
namespace {
namespace gloo_library {

using enum Collective;
constexpr std::int64_t any_size = ChoiceRule::any_size;
constexpr int any_ranks = ChoiceRule::any_ranks;
constexpr std::array rules{
    of_all(all_reduce, any_ranks, any_size, Algorithm::gloo),
    of_all(broadcast, any_ranks, any_size, Algorithm::gloo),
    of_all(all_gather, any_ranks, any_size, Algorithm::ring),
    of_all(reduce_scatter, any_ranks, any_size, Algorithm::halving_doubling),
    of_all(reduce, any_ranks, any_size, Algorithm::binomial),
    of_all(all_to_all, any_ranks, any_size, Algorithm::ring),
    of_all(send_receive, any_ranks, any_size, Algorithm::ring)};

}  // namespace gloo_library
}  // namespace

Rules gloo_rules() { return gloo_library::rules; }

}  // namespace sibyl::collective
