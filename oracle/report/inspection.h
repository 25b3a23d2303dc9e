// What `sibyl inspect` says of a model: how much it computes, what training keeps of it, what was fused, what cannot be
// used.
//
// FLOPs count a multiply-add as two and hold for the batch the model was imported with; backward is what training runs
// (gradients of weights, and of inputs where one is needed). Activation bytes are the tensors autograd keeps from
// forward to backward, each once, without weights and buffers, in the given precision.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "models/onnx/import.h"
#include "models/training/training.h"
#include "oracle/report/report.h"

namespace sibyl {

struct InspectedOperation {
  std::string name;
  std::string kind;
  std::string output;  // shape of the first result
  std::int64_t parameters = 0;
  Flops forward, backward;
  Bytes kept;  // what it computed and backward needs: each tensor once, with its operation
  std::vector<std::string> fused;
};

struct Inspection {
  std::string model;
  std::string producer;
  std::int64_t opset = 0;
  std::int64_t batch = 0;
  std::int64_t parameters = 0;
  std::int64_t active_parameters = 0;  // those that one token meets: of a mixture's experts the chosen ones'
  std::string chosen;                  // "2 of 8 experts"; empty where all parameters are met
  Flops flops_forward, flops_backward;
  Flops products_forward, products_backward;  // of which convolutions and matrix products
  Bytes parameter_bytes;
  Bytes activation_bytes;
  std::vector<InspectedOperation> operations;  // in the order they run
  std::vector<std::string> assumed;            // as Graph's
  std::vector<Unsupported> unsupported;        // with any, all numbers are of a part of the model
  std::int64_t unseen = 0;                     // nodes behind them
  std::vector<UntrainedOutput> untrained;      // what is in the file, and in nothing of the above

  [[nodiscard]] bool partial() const { return !unsupported.empty(); }
};

// `dtype` is what floating tensors are computed and kept in.
Inspection inspect(const Import& import, std::string model, DType dtype, Backend backend);

std::string to_text(const Inspection& inspection, TextStyle style);
std::string to_json(const Inspection& inspection);
Table to_table(const Inspection& inspection);  // one operation a row

}  // namespace sibyl
