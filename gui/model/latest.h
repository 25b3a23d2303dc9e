// Work in another thread of which only the newest request counts.
//
//   Latest<SearchResult> search_(this);
//   search_.ask([study](const Ticket& ticket) { return search(*study->graph, …, {.cancelled = ticket.cancelled()}); },
//               [this](SearchResult result) { show(result); }, [this](const Error& bug) { say(bug); });
//
// ask() tells the job before to stop, and drops what that still gives; `deliver` is called in the thread that asked, or
// `failed` where the job threw: that must not end the window, and what is unsaved with it. What is running when the
// owner is destroyed is told to stop and waited for. A job must hold on to what it reads (shared_ptr).
#pragma once

#include <QCoreApplication>
#include <QObject>
#include <QThreadPool>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "base/result.h"

namespace sibyl::gui {

// Who goes first where processors are fewer than jobs: what a slider shows, before the exact answer, before what views
// work out for themselves.
enum class Urgency { first, soon, later };
// The calling thread, from here on. Where the system does not know of threads' urgency nothing happens.
void work(Urgency urgency);

// What is said of an exception: not enough memory, else a bug.
Error errorOf(const std::exception& thrown);

// What a job knows of its request. Any thread.
class Ticket {
 public:
  Ticket(std::shared_ptr<std::atomic<bool>> dropped, std::function<void(std::size_t, std::size_t)> progress)
      : dropped_(std::move(dropped)), progress_(std::move(progress)) {}
  [[nodiscard]] bool dropped() const { return dropped_->load(std::memory_order_relaxed); }
  [[nodiscard]] std::function<bool()> cancelled() const {
    return [dropped = dropped_] { return dropped->load(std::memory_order_relaxed); };
  }
  void progress(std::size_t done, std::size_t total) const {
    if (progress_) progress_(done, total);
  }

 private:
  std::shared_ptr<std::atomic<bool>> dropped_;
  std::function<void(std::size_t, std::size_t)> progress_;
};

// Its signals, which a template cannot have.
class LatestSignals : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;
  [[nodiscard]] bool busy() const { return busy_; }

 signals:
  void busyChanged(bool busy);
  void progressed(quint64 done, quint64 total);

 protected:
  void setBusy(bool busy) {
    if (std::exchange(busy_, busy) != busy) emit busyChanged(busy);
  }

 private:
  bool busy_ = false;
};

template <class T>
class Latest : public LatestSignals {
 public:
  explicit Latest(QObject* parent = nullptr, Urgency urgency = Urgency::later)
      : LatestSignals(parent), urgency_(urgency) {
    pool_.setMaxThreadCount(1);
  }
  ~Latest() override {
    cancel();
    pool_.waitForDone();
  }

  void ask(std::function<T(const Ticket&)> job, std::function<void(T)> deliver,
           std::function<void(const Error&)> failed) {
    cancel();
    dropped_ = std::make_shared<std::atomic<bool>>(false);
    setBusy(true);
    pool_.start([this, dropped = dropped_, job = std::move(job), deliver = std::move(deliver),
                 failed = std::move(failed)] {
      if (dropped->load()) return;
      work(urgency_);
      const Ticket ticket(dropped, [this, dropped](std::size_t done, std::size_t total) {
        QMetaObject::invokeMethod(this, [this, dropped, done, total] {
          if (!dropped->load()) emit progressed(done, total);
        }, Qt::QueuedConnection);
      });
      try {
        auto result = std::make_shared<T>(job(ticket));
        finish(dropped, [result, deliver] { deliver(std::move(*result)); });
      } catch (const std::exception& thrown) {
        finish(dropped, [error = errorOf(thrown), failed] { failed(error); });
      }
    });
  }

  // Drops what is asked for and not yet delivered.
  void cancel() {
    if (dropped_) dropped_->store(true);
    dropped_.reset();
    pool_.clear();
    setBusy(false);
  }

 private:
  // From the job's thread: `tell` in the owner's, unless the request was dropped by then.
  void finish(const std::shared_ptr<std::atomic<bool>>& dropped, std::function<void()> tell) {
    QMetaObject::invokeMethod(
        this,
        [this, dropped, tell = std::move(tell)] {
          if (dropped->load()) return;
          setBusy(false);
          tell();
        },
        Qt::QueuedConnection);
  }

  Urgency urgency_;
  QThreadPool pool_;  // of its own: one thread, so that a job never runs beside a newer one of the same owner
  std::shared_ptr<std::atomic<bool>> dropped_;
};

}  // namespace sibyl::gui
