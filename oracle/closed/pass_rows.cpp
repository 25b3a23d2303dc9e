#include "oracle/closed/pass_rows.h"

// The processor at hand has its say which vectors there are. Nothing is fused or summed in another order: results are
// the same bytes on any.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define SIBYL_ANY_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define SIBYL_ANY_VECTORS
#endif

namespace sibyl::closed {

void PassRow::resize(std::size_t count, bool sharing) {
  time.resize(count);
  if (!sharing) return;
  for (Losses* losses : {&to_messages[0], &to_messages[1], &of_forward, &of_backward})
    losses->share.resize(count), losses->most.resize(count);
}

void PassRow::set(std::size_t at, const PassFacts& facts, bool sharing) {
  time[at] = facts.time;
  if (!sharing) return;
  const auto put = [at](Losses& losses, const PassFacts::Loss& loss) {
    losses.share[at] = loss.share, losses.most[at] = loss.most;
  };
  for (std::size_t wire = 0; wire < wire_count; ++wire) put(to_messages[wire], facts.to_messages[wire]);
  put(of_forward, facts.of_forward);
  put(of_backward, facts.of_backward);
}

void MessageRow::resize(std::size_t count, bool sharing) {
  alone.resize(count);
  if (!sharing) return;
  on_wire.resize(count);
  for (std::vector<double>& values : rest) values.resize(count);
}

void MessageRow::set(std::size_t at, const MessageFacts& facts, bool sharing) {
  alone[at] = facts.alone;
  if (!sharing) return;
  on_wire[at] = facts.on_wire;
  for (std::size_t wire = 0; wire < wire_count; ++wire) rest[wire][at] = facts.rest[wire];
}

SIBYL_ANY_VECTORS void pass_all(const Coordinates& coordinates, const PassRow& passes, const MessageRow& messages,
                                std::size_t at) {
  double* __restrict ready = coordinates.ready;
  double* __restrict sent = coordinates.sent;
  const double* __restrict arrived = coordinates.arrived;
  const double* __restrict time = passes.time.data() + at;
  const double* __restrict alone = messages.alone.data() + at;
  for (std::size_t i = 0; i < coordinates.count; ++i) {
    const double own = ready[i], others = arrived[i], channel = sent[i];
    const double done = (own < others ? others : own) + time[i];
    ready[i] = done;
    sent[i] = (channel < done ? done : channel) + alone[i];
  }
}

namespace {

inline double lost(double met, double share, double most) {
  const double lost = (met < 0 ? 0.0 : met) * share;
  return lost < most ? lost : most;
}

}  // namespace

SIBYL_ANY_VECTORS void pass_all(const CoordinatesOnWires& on, const PassRow& passes, const MessageRow& messages,
                                std::size_t at, const PassRow::Losses& losses, std::size_t next) {
  const Coordinates& coordinates = on.of;
  double* __restrict ready = coordinates.ready;
  double* __restrict sent = coordinates.sent;
  double* __restrict inside = on.inside;
  double* __restrict between = on.between;
  const double* __restrict arrived = coordinates.arrived;
  const double* __restrict time = passes.time.data() + at;
  const double* __restrict inside_share = passes.to_messages[0].share.data() + at;
  const double* __restrict inside_most = passes.to_messages[0].most.data() + at;
  const double* __restrict between_share = passes.to_messages[1].share.data() + at;
  const double* __restrict between_most = passes.to_messages[1].most.data() + at;
  const double* __restrict alone = messages.alone.data() + at;
  const double* __restrict on_wire = messages.on_wire.data() + at;
  const double* __restrict inside_rest = messages.rest[0].data() + at;
  const double* __restrict between_rest = messages.rest[1].data() + at;
  const double* __restrict share = losses.share.data() + next;
  const double* __restrict most = losses.most.data() + next;
  for (std::size_t i = 0; i < coordinates.count; ++i) {
    const double own = ready[i], others = arrived[i], channel = sent[i], a = inside[i], b = between[i];
    const double start = own < others ? others : own;
    const double done = start + time[i] + lost(a - start, inside_share[i], inside_most[i]) +
                        lost(b - start, between_share[i], between_most[i]);
    const double there = (channel < done ? done : channel) + alone[i] + lost(on_wire[i], share[i], most[i]);
    const double left_inside = there - inside_rest[i], left_between = there - between_rest[i];
    ready[i] = done;
    sent[i] = there;
    inside[i] = a < left_inside ? left_inside : a;
    between[i] = b < left_between ? left_between : b;
  }
}

SIBYL_ANY_VECTORS void add_all(std::size_t count, double* __restrict to, const double* __restrict times) {
  for (std::size_t i = 0; i < count; ++i) to[i] += times[i];
}

}  // namespace sibyl::closed
