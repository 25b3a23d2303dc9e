// A thread that makes copies one after the other, in the order in which they are handed to it: the trainer's stream of
// copies.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>

namespace sibyl::trainer {

class CopyThread {
 public:
  CopyThread();
  ~CopyThread();  // after what was handed in is done
  CopyThread(const CopyThread&) = delete;
  CopyThread& operator=(const CopyThread&) = delete;

  // The number of what was handed in, from 1 on.
  std::size_t begin(std::function<void()> copy);
  // Until this one is done, and all before it; throws what one of them threw, after which none is made any more.
  void wait(std::size_t number);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<std::function<void()>> waiting_;
  std::size_t taken_ = 0, done_ = 0;  // copies so far
  std::exception_ptr failure_;
  bool closing_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace sibyl::trainer
