#include "trainer/train.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <new>

#include "aten/device.h"
#include "base/files.h"
#include "trainer/agree.h"
#include "trainer/processor_time.h"
#include "trainer/session.h"
#include "trainer/trace_file.h"
#include "trainer/weights_file.h"

namespace sibyl::trainer {
namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

Failure out_of_memory() { return fail(ErrorCode::infeasible, "out of memory", {}, "use a smaller batch"); }

// The allocators of the processor and of a GPU say so.
bool tells_of_memory(const std::string& text) {
  return text.find("can't allocate memory") != std::string::npos || text.find("out of memory") != std::string::npos;
}

// ATen's refusals, and what else goes wrong, as Errors.
template <class Body>
auto caught(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const c10::Error& error) {
    const std::string text = first_line(error.what_without_backtrace());
    if (tells_of_memory(text)) return out_of_memory();
    return fail("libtorch cannot run this model so: " + text);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& exception) {
    return fail(first_line(exception.what()));
  }
}

Seconds slowest(const Communicator& communicator, Seconds own) {
  const std::vector<double> all = communicator.gather_doubles(own.value());
  return Seconds{*std::max_element(all.begin(), all.end())};
}

double mean(const Communicator& communicator, double own) {
  double sum = 0.0;
  for (const double value : communicator.gather_doubles(own)) sum += value;
  return sum / communicator.size();
}

// Where it is told.
std::optional<double> busiest(const Communicator& communicator, std::optional<double> own) {
  const double most = slowest(communicator, Seconds{own.value_or(-1.0)}).value();
  return most < 0 ? std::nullopt : std::optional(most);
}

std::vector<BytesSent> of_all_ranks(const Communicator& communicator, const BytesSent& own) {
  std::vector<BytesSent> all(static_cast<std::size_t>(communicator.size()));
  for (const BytesSentPart& part : bytes_sent_parts) {
    const std::vector<double> bytes = communicator.gather_doubles(static_cast<double>(own.*part.value));
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      all[rank].*part.value = static_cast<std::int64_t>(bytes[rank]);
  }
  return all;
}

std::vector<OffloadedBytes> of_all_ranks(const Communicator& communicator, const OffloadedBytes& own) {
  const std::vector<double> in = communicator.gather_doubles(static_cast<double>(own.in));
  const std::vector<double> out = communicator.gather_doubles(static_cast<double>(own.out));
  std::vector<OffloadedBytes> all;
  for (std::size_t rank = 0; rank < in.size(); ++rank)
    all.push_back({static_cast<std::int64_t>(in[rank]), static_cast<std::int64_t>(out[rank])});
  return all;
}

constexpr Bytes worth_counting{1 << 20};  // of memory that a step takes anew

// Joins what the ranks measured. After the last step, so that gathering does not hold the ranks together between steps.
Measurement gathered(const Communicator& communicator, const Plan& plan, const TrainSettings& settings,
                     const std::vector<Session::Step>& steps, MeasuredMemory memory) {
  Measurement m;
  double peak = 0.0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    // Of a pipeline's ranks only those of the last stage have it.
    m.losses.push_back(mean(communicator, steps[i].loss) * plan.mesh.size(MeshAxis::pipeline));
    if (static_cast<std::int64_t>(i) < settings.warmup) continue;
    const StepTimes& own = steps[i].times;
    m.steps.push_back({slowest(communicator, own.forward), slowest(communicator, own.backward),
                       slowest(communicator, own.exchange), slowest(communicator, own.optimizer),
                       slowest(communicator, own.total)});
    if (!settings.emulated && settings.device.empty())  // else what the host's memory does takes no time of the device
      m.grew.push_back(slowest(communicator, Seconds{steps[i].grown.value()}).value() > worth_counting.value());
    peak = std::max(peak, static_cast<double>(steps[i].peak_bytes));
  }
  m.memory = memory;
  m.memory.peak = Bytes{slowest(communicator, Seconds{peak}).value()};
  if (settings.emulated) m.memory.peak += settings.emulated->framework;
  if (!settings.device.empty()) {
    const aten::HeldMemory held = aten::held_memory();
    m.memory.reserved = Bytes{slowest(communicator, Seconds{held.reserved.value()}).value()};
    m.memory.framework = Bytes{slowest(communicator, Seconds{held.context.value()}).value()};
    m.memory.peak += m.memory.framework;
  }
  m.bytes_sent = of_all_ranks(communicator, steps.back().bytes_sent);
  for (int rank = 0; rank < communicator.size(); ++rank)
    m.bytes_planned.push_back(bytes_by_kind(plan, rank, Algorithm::automatic));
  if (settings.emulated)
    for (const double kernels : communicator.gather_doubles(steps.back().busy.value())) m.kernels.emplace_back(kernels);
  m.offloaded = of_all_ranks(communicator, steps.back().offloaded);
  for (int rank = 0; rank < communicator.size(); ++rank) m.offloaded_planned.push_back(bytes_offloaded(plan, rank));
  return m;
}

void log_loss(const TrainSettings& settings, std::int64_t step, double loss) {
  if (settings.log_every > 0 && !settings.emulated && step % settings.log_every == 0)
    fmt::print(stderr, "step {} loss {:.6f}\n", step, loss);
}

// Some kernels (max pooling) run faster or slower on what is no number.
void warn_if_diverged(const std::vector<Session::Step>& steps) {
  const auto first =
      std::find_if(steps.begin(), steps.end(), [](const auto& step) { return !std::isfinite(step.loss); });
  if (first != steps.end())
    fmt::print(stderr, "the loss is no number from step {} on: give a smaller --lr; times may differ from real ones\n",
               first - steps.begin());
}

// Of a step after all that is measured, evaluated and saved.
Result<void> write_timeline(Session& session, const Plan& plan, const TrainSettings& settings,
                            Communicator& communicator) {
  const std::string device = device_text(settings);
  const TraceProcess own =
      session.traced_step(settings.warmup + settings.steps, settings.emulated ? device : "measured");
  Seconds end;
  for (const TraceTrack& track : own.tracks)
    for (const TraceSpan& span : track.spans) end = std::max(end, span.end);
  const std::vector<TraceArgument> about = {{"model", session.graph().name},
                                            {"device", device},
                                            {"parallel", parallel_text(plan.strategy)},
                                            {"global_batch", plan.strategy.global_batch},
                                            {"precision", std::string(to_string(plan.strategy.precision))},
                                            {"optimizer", std::string(to_string(plan.strategy.optimizer))},
                                            {"step_time_s", end.value()}};
  return write_trace(communicator, own, about, *settings.trace);
}

Measurement run(Session& session, const Plan& plan, const TrainSettings& settings, Communicator& communicator) {
  std::vector<Session::Step> steps;
  std::optional<ProcessorTime> from;
  for (std::int64_t i = 0; i < settings.warmup + settings.steps; ++i) {
    if (i == settings.warmup) from = processor_time();
    steps.push_back(session.step(i));
    if (session.shows_loss()) log_loss(settings, i, steps.back().loss);
  }
  const std::optional<double> busy = busy_share(from, processor_time());
  if (session.shows_loss()) warn_if_diverged(steps);
  Measurement measurement = gathered(communicator, plan, settings, steps, session.memory());
  measurement.processors_busy = busiest(communicator, busy);
  session.gather_parameters();
  measurement.replicas_agree = session.replicas_agree();
  session.release_parameters();
  if (settings.evaluate) measurement.accuracy = session.accuracy();
  if (settings.save_weights) {
    session.gather_parameters();
    if (const auto saved = save_weights(session, *settings.save_weights); !saved)
      measurement.weights_error = saved.error();
    session.release_parameters();
  }
  if (settings.trace)
    if (const auto written = write_timeline(session, plan, settings, communicator); !written)
      measurement.trace_error = written.error();
  return measurement;
}

// What fails now fails on this rank alone: the others wait for it, and a session that goes waits for its threads, which
// wait for them. So all end.
Result<Measurement> run_or_end_all(Session& session, const Plan& plan, const TrainSettings& settings,
                                   Communicator& communicator) {
  Result<Measurement> result =
      caught([&]() -> Result<Measurement> { return run(session, plan, settings, communicator); });
  if (result || communicator.size() == 1) return result;
  fmt::print(stderr, "{}\n", to_string(result.error()));
  communicator.end_all(exit_code(result.error().code));
}

}  // namespace

Result<Measurement> train(const Graph& graph, const Plan& plan, const TrainSettings& settings,
                          Communicator& communicator) {
  const Result<MeshGroups> groups = MeshGroups::create(plan, communicator);
  SIBYL_CHECK(agree(communicator, groups.map([](const MeshGroups&) {})));
  Result<Session> session = caught([&]() -> Result<Session> {
    if (settings.save_weights && communicator.rank() == 0) SIBYL_CHECK(check_writable(*settings.save_weights));
    return Session::prepare(graph, plan, settings, communicator, *groups);
  });
  SIBYL_CHECK(agree(communicator, session.map([](const Session&) {})));
  SIBYL_CHECK(agree(communicator, session->check_data()));
  // Not after an hour of training.
  if (settings.trace)
    SIBYL_CHECK(agree(communicator, communicator.rank() == 0 ? can_write(*settings.trace) : Result<void>{}));
  return run_or_end_all(*session, plan, settings, communicator);
}

}  // namespace sibyl::trainer
