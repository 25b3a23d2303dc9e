#include "trainer/copy_thread.h"

#include <utility>

namespace sibyl::trainer {

CopyThread::CopyThread() : thread_([this] { run(); }) {}

CopyThread::~CopyThread() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::size_t CopyThread::begin(std::function<void()> copy) {
  std::size_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push(std::move(copy));
    number = ++taken_;
  }
  changed_.notify_all();
  return number;
}

void CopyThread::wait(std::size_t number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= number || failure_; });
  if (failure_) std::rethrow_exception(failure_);
}

void CopyThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !waiting_.empty() || closing_; });
    if (waiting_.empty()) return;
    const std::function<void()> copy = std::move(waiting_.front());
    waiting_.pop();
    if (!failure_) {
      lock.unlock();
      std::exception_ptr failure;
      try {
        copy();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      failure_ = failure;
    }
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace sibyl::trainer
