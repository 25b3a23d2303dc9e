#include "oracle/closed/pass_rows.h"

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
  SIBYL_ROWS_APART
  for (std::size_t i = 0; i < coordinates.count; ++i)
    ready[i] = pass_one(ready[i], arrived[i], time[i], alone[i], sent[i]);
}

namespace {

inline double lost(double met, double share, double most) {
  const double lost = (met < 0 ? 0.0 : met) * share;
  return lost < most ? lost : most;
}

// Most pipelines send between nodes alone: a third less to load.
template <bool within>
[[gnu::always_inline]] inline void pass_on_wires(const CoordinatesOnWires& on, const PassRow& passes,
                                                 const MessageRow& messages, std::size_t at,
                                                 const PassRow::Losses& losses, std::size_t next) {
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
  SIBYL_ROWS_APART
  for (std::size_t i = 0; i < coordinates.count; ++i) {
    const double own = ready[i], others = arrived[i], channel = sent[i], b = between[i];
    const double start = own < others ? others : own;
    double done = start + time[i];
    if constexpr (within) done += lost(inside[i] - start, inside_share[i], inside_most[i]);
    done += lost(b - start, between_share[i], between_most[i]);
    const double there = (channel < done ? done : channel) + alone[i] + lost(on_wire[i], share[i], most[i]);
    ready[i] = done;
    sent[i] = there;
    if constexpr (within) {
      const double a = inside[i], left = there - inside_rest[i];
      inside[i] = a < left ? left : a;
    }
    const double left = there - between_rest[i];
    between[i] = b < left ? left : b;
  }
}

}  // namespace

SIBYL_ANY_VECTORS void pass_between(const CoordinatesOnWires& on, const PassRow& passes, const MessageRow& messages,
                                    std::size_t at, const PassRow::Losses& losses, std::size_t next) {
  pass_on_wires<false>(on, passes, messages, at, losses, next);
}
SIBYL_ANY_VECTORS void pass_on_both(const CoordinatesOnWires& on, const PassRow& passes, const MessageRow& messages,
                                    std::size_t at, const PassRow::Losses& losses, std::size_t next) {
  pass_on_wires<true>(on, passes, messages, at, losses, next);
}

void pass_all(const CoordinatesOnWires& on, const PassRow& passes, const MessageRow& messages, std::size_t at,
              const PassRow::Losses& losses, std::size_t next) {
  const auto pass = on.inside != nullptr ? pass_on_both : pass_between;
  pass(on, passes, messages, at, losses, next);
}

SIBYL_ANY_VECTORS void add_all(std::size_t count, double* __restrict to, const double* __restrict times) {
  for (std::size_t i = 0; i < count; ++i) to[i] += times[i];
}

}  // namespace sibyl::closed
