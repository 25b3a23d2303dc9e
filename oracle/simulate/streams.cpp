#include "oracle/simulate/streams.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sibyl {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

class Streams {
 public:
  Streams(std::span<const Task> tasks, std::span<const Message> messages, std::span<const Message> copies,
          const Slowdown& slowdown)
      : tasks_(tasks), messages_(messages), copies_(copies), slowdown_(slowdown) {
    result_.tasks.resize(tasks.size());
    result_.messages.resize(messages.size());
    result_.copies.resize(copies.size());
  }

  StreamsResult run(const Cancelled& cancelled) {
    constexpr std::size_t between = 1024;  // events: asking takes as long as a few of them
    for (std::size_t event = 1; task_ < tasks_.size() || message_ < messages_.size() || copy_ < copies_.size();
         ++event) {
      if (event % between == 0 && is_true(cancelled)) break;
      start_what_can();
      advance();
      if (!(now_ < never)) break;  // a duration that is no number: what is left would never begin
    }
    return std::move(result_);
  }

 private:
  void start_what_can() {
    if (!task_runs_ && task_ < tasks_.size()) {
      if (!issued_) issue_end_ += tasks_[task_].issue.value(), issued_ = true;
      if (now_ >= issue_end_ && !lacks_message() && !lacks_copy()) {
        task_runs_ = true;
        task_left_ = tasks_[task_].duration.value();
        wait_left_ = tasks_[task_].wait.value();
        result_.tasks[task_].start = Seconds{now_};
      }
    }
    // `at_once` + 1 is 0.
    if (!message_runs_ && message_ < messages_.size() && messages_[message_].after + 1 <= task_) {
      message_runs_ = true;
      message_left_ = messages_[message_].duration.value();
      beside_ = slowdown_.beside(messages_[message_].duration);
      result_.messages[message_].start = Seconds{now_};
    }
    if (!copy_runs_ && copy_ < copies_.size() && copies_[copy_].after + 1 <= task_) {
      copy_runs_ = true;
      copy_left_ = copies_[copy_].duration.value();
      result_.copies[copy_].start = Seconds{now_};
    }
  }

  [[nodiscard]] bool lacks_message() const { return tasks_[task_].messages > message_; }
  [[nodiscard]] bool lacks_copy() const { return tasks_[task_].copies > copy_; }

  [[nodiscard]] Rates rates() const {
    if (!task_runs_ || !message_runs_ || wait_left_ > 0) return {};
    if (const std::optional<WireUse>& wire = tasks_[task_].wire) return shared_wire(*wire, messages_[message_].wire);
    return {1.0 / beside_.compute, 1.0 / beside_.communication};
  }

  // Of the kernel that runs, and of the copy beside it.
  [[nodiscard]] double rate_beside_copies() const {
    const bool kernel = task_runs_ && wait_left_ <= 0 && !tasks_[task_].wire;
    return kernel && copy_runs_ ? 1.0 / slowdown_.copies : 1.0;
  }

  // To the next event: a task or a message ends, or the host issues the task the device waits for.
  void advance() {
    const auto [beside_message, message_rate] = rates();
    const double copy_rate = rate_beside_copies(), task_rate = beside_message * copy_rate;
    const bool waits = !task_runs_ && task_ < tasks_.size();
    const double to_task = task_runs_ ? task_left_ / task_rate : never;
    const double to_exchange = task_runs_ && wait_left_ > 0 ? wait_left_ : never;
    const double to_message = message_runs_ ? message_left_ / message_rate : never;
    const bool launches = waits && now_ < issue_end_;
    const double to_issue = launches ? issue_end_ - now_ : never;
    const double to_copy = copy_runs_ ? copy_left_ / copy_rate : never;
    const double step = std::min({to_task, to_exchange, to_message, to_copy, to_issue});
    now_ += step;
    if (launches) {
      result_.host_wait += Seconds{step};
      if (to_issue <= step) now_ = std::max(now_, issue_end_);
    } else if (waits) {
      (lacks_message() ? result_.message_wait : result_.copy_wait) += Seconds{step};
    }
    if (task_runs_) {
      if (tasks_[task_].wire) result_.exchange_delay += Seconds{step * (1.0 - task_rate)};
      wait_left_ = to_exchange <= step ? 0.0 : wait_left_ - step;
      result_.copy_wait += Seconds{step * beside_message * (1.0 - copy_rate)};
      task_left_ -= step * task_rate;
      if (to_task <= step) end_task();
    }
    if (message_runs_) {
      message_left_ -= step * message_rate;
      if (to_message <= step) end_message();
    }
    if (copy_runs_) {
      copy_left_ -= step * copy_rate;
      if (to_copy <= step) end_copy();
    }
  }

  void end_task() {
    result_.tasks[task_].end = result_.compute_end = Seconds{now_};
    task_runs_ = issued_ = false;
    ++task_;
  }
  void end_message() {
    result_.messages[message_].end = result_.message_end = Seconds{now_};
    message_runs_ = false;
    ++message_;
  }
  void end_copy() {
    result_.copies[copy_].end = result_.copy_end = Seconds{now_};
    copy_runs_ = false;
    ++copy_;
  }

  std::span<const Task> tasks_;
  std::span<const Message> messages_, copies_;
  const Slowdown& slowdown_;
  Slowdown::Measured beside_;  // the message that is under way
  StreamsResult result_;
  double now_ = 0, issue_end_ = 0, task_left_ = 0, wait_left_ = 0, message_left_ = 0, copy_left_ = 0;
  std::size_t task_ = 0, message_ = 0, copy_ = 0;
  bool task_runs_ = false, message_runs_ = false, copy_runs_ = false, issued_ = false;
};

}  // namespace

Rates shared_wire(const WireUse& first, const WireUse& second) {
  if (first.between_nodes != second.between_nodes || first.busy + second.busy <= 1.0) return {};
  const double share = first.flows / (first.flows + second.flows);
  if (first.busy <= share) return {1.0, (1.0 - first.busy) / second.busy};
  if (second.busy <= 1.0 - share) return {(1.0 - second.busy) / first.busy, 1.0};
  return {share / first.busy, (1.0 - share) / second.busy};
}

Slowdown::Measured Slowdown::beside(Seconds message) const {
  if (count == 0) return {message, compute, communication};
  const auto end = measured.begin() + static_cast<std::ptrdiff_t>(count);
  const auto above = std::find_if(measured.begin(), end, [&](const Measured& m) { return m.message >= message; });
  if (above == measured.begin()) return measured.front();
  if (above == end) return *(end - 1);
  const Measured &a = *(above - 1), &b = *above;
  const double share = std::log(message / a.message) / std::log(b.message / a.message);
  return {message, a.compute + share * (b.compute - a.compute),
          a.communication + share * (b.communication - a.communication)};
}

StreamsResult run_streams(std::span<const Task> tasks, std::span<const Message> messages, const Slowdown& slowdown,
                          std::span<const Message> copies, const Cancelled& cancelled) {
  return Streams(tasks, messages, copies, slowdown).run(cancelled);
}

// Between messages tasks advance at full speed, and what is left of a message once all tasks have ended does, too.
StreamEnds closed_streams(Seconds tasks, std::span<const ReadyMessage> messages, const Slowdown& slowdown,
                          std::span<const Stretch> stretches, Seconds before) {
  Seconds now, done;   // wall time; tasks done by then
  std::size_t at = 0;  // in stretches
  StreamEnds ends;
  for (const ReadyMessage& message : messages) {
    if (message.ready > done) {
      now += message.ready - done;
      done = message.ready;
    }
    const Slowdown::Measured slowed = slowdown.beside(message.duration);
    Seconds left = message.duration;
    while (left.value() > 0 && done < tasks) {
      while (at < stretches.size() && before + stretches[at].until <= done) ++at;
      Rates rates{1.0 / slowed.compute, 1.0 / slowed.communication};
      Seconds end = tasks;
      if (done < before && before < tasks) {
        end = before;
      } else if (at < stretches.size()) {
        end = std::min(before + stretches[at].until, tasks);
        if (stretches[at].exchange) rates = shared_wire(*stretches[at].exchange, message.wire);
      }
      const Seconds all = (end - done) / rates.first, sent = left / rates.second;
      const bool outlasts = sent > all;
      now += outlasts ? all : sent;
      left = outlasts ? left - all * rates.second : Seconds{};
      done = outlasts ? end : done + sent * rates.first;
    }
    if (done >= tasks && ends.compute.value() == 0) ends.compute = now;
    now += left;
    ends.messages = now;
  }
  if (ends.compute.value() == 0) ends.compute = now + (tasks - done);
  return ends;
}

}  // namespace sibyl
