// Optimizers' updates of one parameter: launch by launch as aten/optimizer.cpp and torch.optim's single-tensor path run
// them, and fused into one kernel, where libraries do that.
#include "profiler/cudnn/program.h"

namespace sibyl::cudnn {
namespace {

class Updates {
 public:
  Updates(Program& p, const Maker& m) : p_(p), m_(m), n_(element_count(m.input(0))) {}

  std::size_t tensor(bool filled = true) { return p_.add(filled ? m_.values({n_}) : m_.result({n_})); }
  void point(Point op, std::size_t a, std::size_t b, std::size_t c, std::size_t y, float s = 1e-4f) {
    p_.launch([=, n = n_, type = m_.type](const Run& r) {
      cudnn::point(op, type, s, r.at(a), r.at(b), r.at(c), r.at(y), n, r.stream());
    });
  }
  void norm(std::size_t x) { add_sum(p_, Sum::squares, m_.type, x, p_.add(m_.result({})), 1, n_, 1); }
  void fuse(const std::function<void(const Run&, Type, std::int64_t)>& run) {
    p_.fused.push_back({{Choice{[run, type = m_.type, n = n_](const Run& r) { run(r, type, n); }, 0, "fused"}}});
  }

 private:
  Program& p_;
  const Maker& m_;
  std::int64_t n_;
};

// Both moments: m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g².
void average(Updates& u, std::size_t g, std::size_t m, std::size_t v) {
  u.point(Point::scale, m, m, m, m, 0.9f);
  u.point(Point::add_scaled, m, g, g, m, 0.1f);
  u.point(Point::scale, v, v, v, v, 0.999f);
  u.point(Point::add_product, v, g, g, v, 0.001f);
}

// sqrt(v) / c + epsilon
std::size_t denominator(Updates& u, std::size_t v) {
  const std::size_t d = u.tensor(false);
  u.point(Point::root, v, v, v, d);
  u.point(Point::scale, d, d, d, d, 1.f);
  u.point(Point::add_constant, d, d, d, d, 1e-8f);
  return d;
}

}  // namespace

Program program(const OptimizerUpdate& op, const Maker& m) {
  Program p;
  Updates u(p, m);
  const std::size_t w = u.tensor(), g = u.tensor();
  if (op.kind == OptimizerKind::adamw)
    u.point(Point::scale, w, w, w, w, 0.9999f);
  else if (op.weight_decay && op.kind != OptimizerKind::lamb && op.kind != OptimizerKind::lars)
    u.point(Point::add_scaled, g, w, w, g);
  switch (op.kind) {
    case OptimizerKind::sgd: u.point(Point::add_scaled, w, g, g, w); break;
    case OptimizerKind::momentum: {
      const std::size_t s = u.tensor();
      u.point(Point::scale, s, s, s, s, 0.9f);
      u.point(Point::add_scaled, s, g, g, s, 1.f);
      u.point(Point::add_scaled, w, s, s, w);
      u.fuse([=](const Run& r, Type type, std::int64_t n) {
        fused_momentum(type, r.at(w), r.at(g), r.at(s), n, r.stream());
      });
      break;
    }
    case OptimizerKind::adam:
    case OptimizerKind::adamw: {
      const std::size_t first = u.tensor(), second = u.tensor();
      average(u, g, first, second);
      u.point(Point::add_quotient, w, first, denominator(u, second), w);
      u.fuse([=](const Run& r, Type type, std::int64_t n) {
        fused_adam(type, r.at(w), r.at(g), r.at(first), r.at(second), n, r.stream());
      });
      break;
    }
    case OptimizerKind::lamb: {
      const std::size_t first = u.tensor(), second = u.tensor();
      average(u, g, first, second);
      const std::size_t direction = denominator(u, second);
      u.point(Point::reciprocal, direction, direction, direction, direction);
      u.point(Point::multiply, direction, first, first, direction);
      u.point(Point::scale, direction, direction, direction, direction, 1.f);
      u.point(Point::add_scaled, direction, w, w, direction);
      u.norm(w), u.norm(direction);
      u.point(Point::add_scaled, w, direction, direction, w);
      break;
    }
    case OptimizerKind::lars: {
      const std::size_t s = u.tensor();
      u.norm(w), u.norm(g);
      u.point(Point::add_scaled, g, w, w, g);
      u.point(Point::scale, s, s, s, s, 0.9f);
      u.point(Point::add_scaled, s, g, g, s);
      u.point(Point::add_scaled, w, s, s, w);
      break;
    }
  }
  return p;
}

}  // namespace sibyl::cudnn
