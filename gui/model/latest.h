// Work in another thread of which only the newest request counts.
//
//   Latest<SearchResult> search_(this);
//   search_.ask([study](const Ticket& ticket) { return sibyl::search(*study->graph, …, {.cancelled = ticket.cancelled(), …}); },
//               [this](SearchResult result) { show(result); });
//
// ask() tells the job before to stop, and drops what that still gives; `deliver` is called in the thread that asked. What is
// running when the owner is destroyed is told to stop and waited for. A job must hold on to what it reads (shared_ptr).
#pragma once

#include <QCoreApplication>
#include <QObject>
#include <QThreadPool>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

namespace sibyl::gui {

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
  explicit Latest(QObject* parent = nullptr) : LatestSignals(parent) { pool_.setMaxThreadCount(1); }
  ~Latest() override {
    cancel();
    pool_.waitForDone();
  }

  void ask(std::function<T(const Ticket&)> job, std::function<void(T)> deliver) {
    cancel();
    dropped_ = std::make_shared<std::atomic<bool>>(false);
    setBusy(true);
    pool_.start([this, dropped = dropped_, job = std::move(job), deliver = std::move(deliver)] {
      if (dropped->load()) return;
      const Ticket ticket(dropped, [this, dropped](std::size_t done, std::size_t total) {
        QMetaObject::invokeMethod(this, [this, dropped, done, total] {
          if (!dropped->load()) emit progressed(done, total);
        }, Qt::QueuedConnection);
      });
      auto result = std::make_shared<T>(job(ticket));
      QMetaObject::invokeMethod(this, [this, dropped, result, deliver] {
        if (dropped->load()) return;
        setBusy(false);
        deliver(std::move(*result));
      }, Qt::QueuedConnection);
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
  QThreadPool pool_;  // of its own: one thread, so that a job never runs beside a newer one of the same owner
  std::shared_ptr<std::atomic<bool>> dropped_;
};

}  // namespace sibyl::gui
