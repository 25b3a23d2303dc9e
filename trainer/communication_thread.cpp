#include "trainer/communication_thread.h"

#include "comm/prompt_thread.h"
#include "comm/waiting.h"
#include "oracle/plan/names.h"

namespace sibyl::trainer {

CommunicationThread::CommunicationThread(Communicator& communicator)
    : communicator_(communicator), thread_([this] { run(); }) {}

CommunicationThread::~CommunicationThread() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CommunicationThread::all_reduce(const Elements& buffer) { begin(Collective::all_reduce, buffer, {}); }

std::size_t CommunicationThread::begin(Collective collective, const Elements& buffer, std::string name,
                                       Communicator* among) {
  std::size_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push({collective, buffer, std::move(name), among != nullptr ? among : &communicator_});
    number = ++taken_;
  }
  changed_.notify_all();
  return number;
}

template <class Done>
void CommunicationThread::wait_until(const Done& done) {
  std::unique_lock lock(mutex_);
  compute_runs_ = false;
  changed_.wait(lock, done);
  compute_runs_ = true;
}

void CommunicationThread::wait(std::size_t number) {
  wait_until([&] { return done_ >= number; });
}

void CommunicationThread::wait() {
  wait_until([this] { return waiting_.empty() && !busy_; });
}

void CommunicationThread::record(Recorder* recorder) {
  const std::lock_guard lock(mutex_);
  recorder_ = recorder;
  recorded_ = 0;
}

void CommunicationThread::perform(const Item& item) {
  const Seconds start = recorder_ != nullptr ? recorder_->now() : Seconds{};
  switch (item.collective) {
    case Collective::reduce_scatter: item.among->reduce_scatter(item.buffer, Algorithm::automatic); break;
    case Collective::all_gather: item.among->all_gather(item.buffer.bytes, width_of(item.buffer.type)); break;
    default: item.among->all_reduce(item.buffer, Algorithm::automatic);
  }
  if (recorder_ == nullptr) return;
  const auto bytes = static_cast<std::int64_t>(item.buffer.bytes.size());
  const bool reduced = item.collective == Collective::all_reduce;
  const Algorithm runs = reduced ? item.among->chosen(bytes) : Algorithm::ring;
  recorder_->add(Recorder::Track::communication, {item.name.empty() ? bucket_name(recorded_++) : item.name,
                                                  "communication",
                                                  start,
                                                  recorder_->now(),
                                                  {{"bytes", bytes}, {"algorithm", std::string(to_string(runs))}}});
}

void CommunicationThread::run() {
  comm::run_promptly();
  comm::wait_beside(compute_runs_);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const Item item = std::move(waiting_.front());
    waiting_.pop();
    busy_ = true;
    lock.unlock();
    perform(item);
    lock.lock();
    ++done_;
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace sibyl::trainer
