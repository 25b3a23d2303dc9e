// The cases: each must train as one rank does, send the bytes of its plan and take the memory predicted
// (training_test.cpp).
#include <cctype>

#include "tests/mpi/sharded/case.h"

namespace sibyl::trainer {
namespace {

constexpr auto gpipe = PipelineSchedule::gpipe;
constexpr auto one_f_one_b = PipelineSchedule::one_forward_one_backward;
constexpr auto interleaved = PipelineSchedule::interleaved;
constexpr auto zero_bubble = PipelineSchedule::zero_bubble;

std::string name_of(const testing::TestParamInfo<Case>& info) {
  std::string name = testing::PrintToString(info.param);
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, Sharded,
    of_these_ranks(Case{"cnn", "tensor=2"}, Case{"cnn", "filter=2"}, Case{"cnn", "channel=2"},
                   Case{"cnn", "spatial=2x1"}, Case{"cnn", "spatial=1x2"}, Case{"cnn_bn", "tensor=2"},
                   Case{"cnn_bn", "filter=2"}, Case{"cnn_bn", "channel=2"}, Case{"volumes", "spatial=2x1x1"},
                   Case{"gpt2", "tensor=2"}, Case{"gpt2", "sequence=2"}, Case{"llama", "tensor=2"},
                   Case{"llama", "sequence=2"}, Case{"gpt2", "filter=2"}, Case{"gpt2", "channel=2"},
                   Case{"cnn", "spatial=2x2"}, Case{"cnn", "data=2,tensor=2"}, Case{"cnn", "data=2,filter=2"},
                   Case{"cnn", "data=2,spatial=2x1"}, Case{"cnn", "data=2,channel=2"},
                   Case{"cnn", "spatial=2x1,filter=2"}, Case{"cnn", "tensor=4"}, Case{"cnn", "filter=2,channel=2"},
                   Case{"volumes", "spatial=1x2x2"}, Case{"gpt2", "tensor=4"}, Case{"gpt2", "data=2,tensor=2"},
                   Case{"llama", "data=2,sequence=2"}, Case{"llama", "tensor=4"}, Case{"gpt2_51", "tensor=2"},
                   Case{"gpt2_51", "sequence=2"}, Case{"gpt2_51", "tensor=4"}, Case{"gpt2_51", "data=2,tensor=2"},
                   Case{"gpt2_mini", "tensor=2"}, Case{"gpt2_mini", "tensor=4"}, synchronised("cnn_bn", "data=2"),
                   synchronised("cnn_bn", "spatial=2x1"), synchronised("cnn_bn", "tensor=2"),
                   synchronised("cnn_bn", "data=4"), synchronised("cnn_bn", "data=2,spatial=2x1"),
                   synchronised("cnn_bn", "data=2,tensor=2"), synchronised("cnn_bn", "spatial=2x2")),
    name_of);

INSTANTIATE_TEST_SUITE_P(Volumes, Sharded,
                         of_these_ranks(Case{"unet", "spatial=2x1x1"}, Case{"unet", "spatial=1x1x2", 2},
                                        Case{"unet", "filter=2"}, Case{"unet", "tensor=2"},
                                        Case{"unet", "spatial=1x2x1", 1, gpipe, 1, 0, "full"},
                                        Case{"unet", "spatial=1x2x2"}, Case{"unet", "data=2,spatial=2x1x1"},
                                        Case{"unet", "filter=2,spatial=2x1x1"}, Case{"unet", "tensor=2,spatial=1x1x2"},
                                        Case{"unet", "spatial=2x1x1,pipeline=2", 2, one_f_one_b},
                                        Case{"unet", "spatial=2x2x2"}, Case{"unet", "data=2,spatial=2x1x2"}),
                         name_of);

INSTANTIATE_TEST_SUITE_P(TwoInputs, Sharded,
                         of_these_ranks(Case{"t5", "tensor=2"}, Case{"t5", "sequence=2"}, Case{"t5", "data=2,tensor=2"},
                                        Case{"t5", "pipeline=2", 2, one_f_one_b},
                                        Case{"t5", "pipeline=2", 2, zero_bubble}, Case{"t5", "tensor=2,pipeline=2", 2},
                                        Case{"dlrm", "tensor=2"}, Case{"dlrm", "channel=2"},
                                        Case{"dlrm", "data=2,tensor=2"}, Case{"dlrm", "pipeline=2", 2, one_f_one_b}),
                         name_of);

INSTANTIATE_TEST_SUITE_P(
    Pipelines, Sharded,
    of_these_ranks(
        Case{"cnn", "pipeline=2", 4, gpipe}, Case{"cnn", "pipeline=2", 4, one_f_one_b},
        Case{"cnn", "pipeline=2", 4, interleaved, 2}, Case{"cnn", "pipeline=2", 4, zero_bubble},
        Case{"cnn_bn", "pipeline=2", 2, one_f_one_b}, Case{"cnn_bn", "pipeline=2", 2, zero_bubble},
        Case{"gpt2", "pipeline=2", 4, gpipe}, Case{"gpt2", "pipeline=2", 4, one_f_one_b},
        Case{"llama", "pipeline=2", 4, interleaved, 2}, Case{"gpt2", "pipeline=2", 4, zero_bubble},
        Case{"llama", "pipeline=2", 4, zero_bubble}, Case{"gpt2", "pipeline=2", 4, one_f_one_b, 1, 0, "full"},
        Case{"gpt2", "pipeline=2", 4, zero_bubble, 1, 0, "full"},
        Case{"gpt2", "pipeline=2", 4, one_f_one_b, 1, 0, "groups:2"}, Case{"llama", "pipeline=4", 8, one_f_one_b},
        Case{"llama", "pipeline=4", 8, zero_bubble}, Case{"cnn", "pipeline=4", 4, gpipe},
        Case{"gpt2", "data=2,pipeline=2", 2, one_f_one_b}, Case{"gpt2", "data=2,pipeline=2", 2, zero_bubble},
        Case{"cnn", "data=2,pipeline=2", 2, gpipe}, Case{"cnn", "data=2,pipeline=2", 2, interleaved, 2},
        Case{"gpt2", "data=2,pipeline=2", 2, one_f_one_b, 1, 1},
        Case{"gpt2", "data=2,pipeline=2", 2, zero_bubble, 1, 1},
        Case{"gpt2", "data=2,pipeline=2", 4, zero_bubble, 1, 2},
        Case{"gpt2", "data=2,pipeline=2", 4, zero_bubble, 1, 3}, Case{"cnn", "data=2,pipeline=2", 4, zero_bubble, 1, 2},
        Case{"cnn", "data=2,pipeline=2", 4, zero_bubble, 1, 3},
        Case{"llama", "data=2,pipeline=2", 4, zero_bubble, 1, 3, "full"},
        Case{"gpt2", "data=2,pipeline=2", 4, one_f_one_b, 1, 2},
        Case{"gpt2", "data=2,pipeline=2", 4, one_f_one_b, 1, 3}, Case{"cnn", "data=2,pipeline=2", 4, gpipe, 1, 3},
        Case{"llama", "data=2,pipeline=2", 4, interleaved, 2, 3},
        Case{"cnn", "data=2,pipeline=2", 4, interleaved, 2, 2},
        Case{"gpt2", "data=2,pipeline=2", 4, one_f_one_b, 1, 3, "full"},
        Case{"gpt2", "tensor=2,pipeline=2", 4, one_f_one_b}, Case{"llama", "sequence=2,pipeline=2", 4, zero_bubble},
        Case{"cnn", "filter=2,pipeline=2", 2, one_f_one_b}, Case{"cnn", "spatial=2x1,pipeline=2", 2, one_f_one_b},
        Case{"llama", "data=2,tensor=2,pipeline=2", 2, one_f_one_b},
        Case{"llama", "data=2,tensor=2,pipeline=2", 2, one_f_one_b, 1, 3}),
    name_of);

INSTANTIATE_TEST_SUITE_P(Tables, Sharded,
                         of_these_ranks(Case{"dlrm", "table=2"}, Case{"dlrm_one", "table=2"},
                                        Case{"dlrm", "table=2", 2}, Case{"dlrm", "table=2", 1, gpipe, 1, 1},
                                        Case{"dlrm_one", "table=2", 1, gpipe, 1, 3}, clipped({"dlrm", "table=2"}),
                                        Case{"gpt2", "table=2"}, Case{"dlrm", "table=4"},
                                        Case{"dlrm", "data=2,table=2"},
                                        Case{"dlrm_one", "data=2,table=2", 1, gpipe, 1, 2},
                                        Case{"dlrm", "table=2,pipeline=2", 2, one_f_one_b},
                                        Case{"dlrm", "tensor=2,table=2"}, Case{"dlrm", "data=2,table=4"}),
                         name_of);

INSTANTIATE_TEST_SUITE_P(
    Experts, Sharded,
    of_these_ranks(
        Case{"experts", "expert=2"}, Case{"experts_dropped", "expert=2"}, Case{"experts", "tensor=2"},
        Case{"experts", "sequence=2"}, Case{"experts", "data=2"}, Case{"experts", "filter=2"},
        Case{"experts", "channel=2"}, Case{"experts", "pipeline=2", 4, one_f_one_b},
        Case{"experts", "pipeline=2", 4, zero_bubble}, Case{"experts", "expert=2", 2},
        Case{"experts", "expert=2", 1, gpipe, 1, 0, "full"}, Case{"experts", "expert=2", 1, gpipe, 1, 1},
        Case{"experts", "expert=2", 1, gpipe, 1, 2}, Case{"experts", "expert=2", 1, gpipe, 1, 3},
        clipped({"experts", "expert=2"}), Case{"experts", "expert=4"}, Case{"experts_dropped", "data=2,expert=2"},
        Case{"experts", "data=2,expert=2"}, Case{"experts", "tensor=2,expert=2"},
        Case{"experts", "sequence=2,expert=2"}, Case{"experts", "expert=2,pipeline=2", 2, one_f_one_b},
        Case{"experts", "expert=2,pipeline=2", 2, zero_bubble}, Case{"experts", "data=2,expert=2", 1, gpipe, 1, 1},
        Case{"experts", "data=2,expert=2", 2, gpipe, 1, 2}, Case{"experts", "data=2,expert=2", 1, gpipe, 1, 3},
        clipped({"experts", "data=2,expert=2", 1, gpipe, 1, 2}), ordered({"experts", "data=2,expert=2"}, "data,expert"),
        Case{"experts", "data=2,expert=2,pipeline=2", 2, one_f_one_b},
        Case{"experts", "data=2,tensor=2,expert=2", 1, gpipe, 1, 3},
        Case{"experts", "tensor=2,expert=2,pipeline=2", 2, interleaved, 2}),
    name_of);

// Where no token is dropped a part of a sequence chooses as the whole does; so above, with sequence=.
INSTANTIATE_TEST_SUITE_P(
    ExpertsInContext, Sharded,
    of_these_ranks(Case{"experts", "context=2"}, Case{"experts", "context=2", 4}, clipped({"experts", "context=2"}),
                   Case{"experts", "context=2", 1, gpipe, 1, 0, "full"}, by_keys({"experts", "context=2"}),
                   in_a_ring({"experts", "context=2"}), Case{"experts", "context=4"},
                   Case{"experts", "context=2,expert=2"}, Case{"experts", "tensor=2,context=2"},
                   Case{"experts", "sequence=2,context=2"}, Case{"experts", "sequence=2,context=2", 2, gpipe, 1, 1},
                   Case{"experts", "sequence=2,context=2,expert=2"}, whole({"experts", "tensor=2"}),
                   whole({"experts", "sequence=2"}), whole({"experts", "sequence=2", 2, gpipe, 1, 0, "full"}),
                   whole({"experts", "sequence=2,expert=2"}),
                   whole({"experts", "sequence=2,context=2", 1, gpipe, 1, 2}),
                   whole(clipped({"experts", "data=2,sequence=2,expert=2", 1, gpipe, 1, 1})),
                   Case{"experts", "data=2,context=2", 2, gpipe, 1, 2},
                   Case{"experts", "context=2,expert=2", 1, gpipe, 1, 3},
                   Case{"experts", "context=2,pipeline=2", 2, one_f_one_b},
                   Case{"experts", "data=2,context=2,expert=2", 1, gpipe, 1, 1}),
    name_of);

INSTANTIATE_TEST_SUITE_P(Clipped, Sharded,
                         of_these_ranks(clipped({"gpt2", "tensor=2"}), clipped({"cnn", "data=2", 1, gpipe, 1, 2}),
                                        clipped({"gpt2", "pipeline=2", 4, one_f_one_b}),
                                        clipped({"llama", "pipeline=2", 4, interleaved, 2}),
                                        clipped({"gpt2", "data=2,pipeline=2", 2, zero_bubble, 1, 1}),
                                        clipped({"llama", "tensor=2,pipeline=2", 4, one_f_one_b})),
                         name_of);

INSTANTIATE_TEST_SUITE_P(Orders, Sharded,
                         of_these_ranks(ordered({"gpt2", "data=2,tensor=2", 1, one_f_one_b, 1, 3}, "data,tensor"),
                                        ordered({"cnn", "data=2,spatial=2x1"}, "data"),
                                        ordered({"gpt2", "data=2,pipeline=2", 2, one_f_one_b}, "pipeline,data"),
                                        ordered({"llama", "tensor=2,pipeline=2", 4, zero_bubble}, "pipeline"),
                                        ordered({"llama", "data=2,tensor=2,pipeline=2", 2, one_f_one_b},
                                                "pipeline,data,tensor")),
                         name_of);

INSTANTIATE_TEST_SUITE_P(Repeated, Sharded,
                         of_these_ranks(repeated({"gpt2", "data=4", 1, gpipe, 1, 1}, 2),
                                        repeated({"cnn", "data=4", 1, gpipe, 1, 2}, 2),
                                        repeated({"gpt2", "data=4", 2, gpipe, 1, 2}, 2),
                                        repeated({"llama", "data=4", 1, gpipe, 1, 3}, 2),
                                        clipped(repeated({"gpt2", "data=4", 1, gpipe, 1, 3}, 2)),
                                        repeated({"gpt2", "data=4,sequence=2", 1, gpipe, 1, 3}, 2),
                                        clipped(repeated({"llama", "data=4,pipeline=2", 1, one_f_one_b, 1, 1}, 2))),
                         name_of);

INSTANTIATE_TEST_SUITE_P(
    Offloaded, Sharded,
    of_these_ranks(offloaded({"gpt2", "data=2"}), offloaded({"gpt2", "data=2"}, "optimizer:nvme"),
                   offloaded({"llama", "data=2", 1, gpipe, 1, 1}, "optimizer:nvme"),
                   offloaded({"gpt2", "data=2", 2, gpipe, 1, 2}),
                   offloaded({"llama", "data=2", 1, gpipe, 1, 3}, "optimizer:nvme"),
                   offloaded({"gpt2", "data=2", 1, gpipe, 1, 1, "full"}), offloaded({"cnn", "data=2"}),
                   offloaded({"bert", "tensor=2"}), offloaded({"gpt2", "context=2"}),
                   offloaded({"gpt2", "pipeline=2", 4, one_f_one_b}),
                   offloaded({"llama", "pipeline=2", 4, interleaved, 2}, "optimizer:nvme"),
                   offloaded({"llama", "pipeline=2", 4, zero_bubble}),
                   clipped(offloaded({"gpt2", "data=2,tensor=2", 1, gpipe, 1, 1}, "optimizer:nvme")),
                   offloaded(repeated({"gpt2", "data=4", 1, gpipe, 1, 1}, 2)),
                   offloaded({"gpt2", "data=2,pipeline=2", 2, one_f_one_b, 1, 1}),
                   offloaded({"llama", "data=2,tensor=2", 2, gpipe, 1, 3}, "optimizer:nvme")),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    ParametersOutside, Sharded,
    of_these_ranks(offloaded({"gpt2", "data=2", 1, gpipe, 1, 3}, "parameters"),
                   offloaded({"llama", "data=2", 2, gpipe, 1, 3}, "optimizer,parameters:nvme"),
                   offloaded({"gpt2", "data=2", 1, gpipe, 1, 3, "full"}, "parameters:nvme,activations"),
                   clipped(offloaded({"cnn", "data=2", 1, gpipe, 1, 3}, "parameters,optimizer")),
                   offloaded({"gpt2", "data=2,context=2", 1, gpipe, 1, 3}, "parameters"),
                   offloaded({"llama", "data=2,tensor=2", 2, gpipe, 1, 3}, "parameters"),
                   offloaded(repeated({"llama", "data=4", 1, gpipe, 1, 3}, 2), "parameters:nvme"),
                   offloaded({"experts", "data=2,expert=2", 1, gpipe, 1, 3}, "optimizer,parameters"),
                   offloaded({"gpt2", "data=2,pipeline=2", 2, one_f_one_b, 1, 3}, "parameters"),
                   offloaded({"llama", "data=2,pipeline=2", 4, interleaved, 2, 3, "full"}, "parameters,activations"),
                   offloaded({"llama", "data=2,pipeline=2", 4, zero_bubble, 1, 3}, "optimizer,parameters:nvme")),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    KeptOutside, Sharded,
    of_these_ranks(offloaded({"llama", "data=2", 2, gpipe, 1, 0, "full"}, "activations:nvme"),
                   offloaded({"gpt2", "data=2", 2, gpipe, 1, 2, "full"}, "optimizer:nvme,activations:nvme"),
                   offloaded({"llama", "data=2", 1, gpipe, 1, 3, "full"}, "optimizer,activations"),
                   offloaded({"cnn", "data=2", 1, gpipe, 1, 0, "full"}, "activations"),
                   offloaded({"experts", "data=2", 1, gpipe, 1, 0, "full"}, "activations"),
                   offloaded({"t5", "tensor=2", 1, gpipe, 1, 0, "full"}, "activations"),
                   offloaded({"llama", "sequence=2", 2, gpipe, 1, 0, "every:2"}, "activations"),
                   offloaded({"bert_words", "context=2", 1, gpipe, 1, 0, "groups:2"}, "activations"),
                   offloaded({"experts", "data=2,tensor=2", 1, gpipe, 1, 3, "full"}, "activations:nvme"),
                   offloaded({"gpt2", "pipeline=2", 4, one_f_one_b, 1, 0, "full"}, "activations"),
                   offloaded({"llama", "pipeline=2", 4, gpipe, 1, 0, "full"}, "activations:nvme"),
                   offloaded({"deep", "pipeline=2", 4, interleaved, 2, 0, "full"}, "activations"),
                   offloaded({"deep", "pipeline=2", 4, zero_bubble, 1, 0, "full"}, "activations:nvme"),
                   offloaded({"gpt2", "data=2,pipeline=2", 2, one_f_one_b, 1, 1, "full"}, "optimizer,activations")),
    name_of);

INSTANTIATE_TEST_SUITE_P(Contexts, Sharded,
                         of_these_ranks(Case{"gpt2", "context=2"}, Case{"bert", "context=2"},
                                        Case{"bert_words", "context=2"}, Case{"llama", "context=2"},
                                        Case{"apart", "context=2"}, Case{"features", "context=2"},
                                        Case{"gpt2", "context=2", 4}, clipped({"bert", "context=2"}),
                                        Case{"gpt2", "context=2", 2, one_f_one_b, 1, 0, "selective"},
                                        Case{"bert_words", "context=2", 1, one_f_one_b, 1, 0, "full"},
                                        Case{"gpt2", "context=4"}, Case{"bert_words", "context=4"},
                                        Case{"gpt2", "data=2,context=2"}, Case{"gpt2_51", "tensor=2,context=2"},
                                        Case{"gpt2", "sequence=2,context=2"}, Case{"bert", "sequence=2,context=2"},
                                        Case{"apart", "sequence=2,context=2"}, Case{"gpt2", "filter=2,context=2"},
                                        Case{"gpt2", "context=2,pipeline=2", 4, one_f_one_b},
                                        Case{"llama", "context=2,pipeline=2", 4, zero_bubble},
                                        Case{"bert", "context=2,pipeline=2", 4, interleaved, 2},
                                        Case{"gpt2", "data=2,context=2", 1, one_f_one_b, 1, 1},
                                        Case{"bert_words", "data=2,context=2", 2, one_f_one_b, 1, 2},
                                        Case{"llama", "data=2,context=2", 1, one_f_one_b, 1, 3},
                                        clipped({"gpt2", "data=2,context=2", 1, one_f_one_b, 1, 3}),
                                        ordered({"gpt2", "tensor=2,context=2"}, "context"),
                                        Case{"gpt2", "data=2,tensor=2,context=2"}, Case{"gpt2", "tensor=4,context=2"},
                                        Case{"bert", "data=2,sequence=2,context=2", 1, one_f_one_b, 1, 3},
                                        Case{"gpt2", "tensor=2,context=2,pipeline=2", 2, one_f_one_b},
                                        Case{"gpt2", "data=2,context=4", 1, one_f_one_b, 1, 1}),
                         name_of);

// Attention of a rank's queries with all keys and values: asked for, or because heads cannot be shared (llama has two
// of keys, context=4; with tensor=4 gpt2 has one).
INSTANTIATE_TEST_SUITE_P(
    ContextsByKeys, Sharded,
    of_these_ranks(by_keys({"gpt2", "context=2"}), by_keys({"bert", "context=2"}), by_keys({"llama", "context=2"}),
                   by_keys({"apart", "context=2"}), by_keys({"features", "context=2"}),
                   by_keys(clipped({"gpt2", "context=2", 4})),
                   by_keys({"gpt2", "context=2", 2, one_f_one_b, 1, 0, "selective"}),
                   by_keys({"llama", "context=2", 1, one_f_one_b, 1, 0, "full"}), Case{"llama", "context=4"},
                   by_keys({"bert_words", "context=4"}), by_keys({"gpt2", "data=2,context=2", 1, one_f_one_b, 1, 3}),
                   by_keys({"gpt2", "sequence=2,context=2"}), by_keys({"llama", "tensor=2,context=2"}),
                   by_keys({"gpt2", "context=2,pipeline=2", 4, zero_bubble}), Case{"gpt2", "context=8"},
                   Case{"gpt2", "tensor=2,context=4"}, by_keys({"llama", "context=4,pipeline=2", 2, interleaved, 2})),
    name_of);

INSTANTIATE_TEST_SUITE_P(ContextsInARing, Sharded,
                         of_these_ranks(in_a_ring({"gpt2", "context=2"}), in_a_ring({"bert", "context=2"}),
                                        in_a_ring({"llama", "context=2"}), in_a_ring({"bert_words", "context=2", 4}),
                                        in_a_ring(clipped({"gpt2", "context=2", 4})),
                                        in_a_ring({"gpt2", "context=2", 2, one_f_one_b, 1, 0, "selective"}),
                                        in_a_ring({"llama", "context=2", 1, one_f_one_b, 1, 0, "full"}),
                                        in_a_ring({"gpt2", "context=4"}), in_a_ring({"llama", "context=4"}),
                                        in_a_ring({"bert_words", "context=4"}),
                                        in_a_ring({"gpt2", "data=2,context=2", 1, one_f_one_b, 1, 3}),
                                        in_a_ring({"gpt2", "sequence=2,context=2"}),
                                        in_a_ring({"llama", "tensor=2,context=2"}),
                                        in_a_ring({"gpt2", "context=2,pipeline=2", 4, zero_bubble}),
                                        in_a_ring({"gpt2", "context=8"}), in_a_ring({"gpt2", "tensor=2,context=4"}),
                                        in_a_ring({"llama", "context=4,pipeline=2", 2, interleaved, 2})),
                         name_of);

INSTANTIATE_TEST_SUITE_P(State, Sharded,
                         of_these_ranks(Case{"gpt2", "data=2,tensor=2", 1, one_f_one_b, 1, 1},
                                        Case{"gpt2", "data=2,tensor=2", 1, one_f_one_b, 1, 2},
                                        Case{"llama", "data=2,tensor=2", 2, one_f_one_b, 1, 3},
                                        Case{"gpt2", "data=2,sequence=2", 1, one_f_one_b, 1, 1},
                                        Case{"gpt2", "data=2,sequence=2", 1, one_f_one_b, 1, 2},
                                        Case{"gpt2", "data=2,sequence=2", 1, one_f_one_b, 1, 3},
                                        Case{"llama", "data=2,sequence=2", 1, one_f_one_b, 1, 3},
                                        Case{"gpt2", "data=2,sequence=2", 1},
                                        Case{"gpt2", "tensor=2", 1, one_f_one_b, 1, 0, "full"},
                                        Case{"llama", "sequence=2", 2, one_f_one_b, 1, 0, "selective"},
                                        Case{"gpt2", "tensor=2", 1, one_f_one_b, 1, 0, "every:2"},
                                        Case{"gpt2", "tensor=2", 1, one_f_one_b, 1, 0, "normalization,gelu,gelu_tanh"},
                                        Case{"gpt2", "data=2", 2, one_f_one_b, 1, 3, "normalization,gelu,gelu_tanh"},
                                        Case{"cnn", "data=2,filter=2", 2, one_f_one_b, 1, 2}),
                         name_of);

// Parameters that several graphs of one backward read: a tied embedding whose other reader runs again, and blocks that
// do and have the same weights. And ties of an interleaved pipeline, of which each rank comes to the other's last one
// first.
INSTANTIATE_TEST_SUITE_P(ReadTwice, Sharded,
                         of_these_ranks(Case{"gpt2", "data=2", 1, gpipe, 1, 0, "linear"},
                                        Case{"gpt2", "data=2", 2, gpipe, 1, 2, "linear"},
                                        Case{"gpt2", "data=2", 1, gpipe, 1, 3, "linear"},
                                        Case{"shared", "data=2", 1, gpipe, 1, 0, "full"},
                                        Case{"shared", "data=2", 2, gpipe, 1, 3, "full"},
                                        begun_at({"ties", "pipeline=2", 2, interleaved, 2}, {"fc1", "fc2", "fc3"})),
                         name_of);

// Axes beside each other on a convolutional network; norms of gradients and of tensors whose parts lie apart;
// statistics that are shared while samples come in parts or by stages. (LAMB gives a gradient that is nothing but
// rounding a direction: a transformer has such.)
INSTANTIATE_TEST_SUITE_P(Together, Sharded,
                         of_these_ranks(Case{"cnn", "tensor=2,pipeline=2", 2, one_f_one_b},
                                        Case{"cnn", "data=2,tensor=2,pipeline=2", 2, one_f_one_b},
                                        Case{"cnn", "spatial=2x1,channel=2"}, Case{"cnn", "data=2,spatial=2x2"},
                                        clipped({"cnn", "spatial=2x1"}), clipped({"cnn", "filter=2"}),
                                        synchronised({"cnn_bn", "spatial=2x1", 2}),
                                        synchronised({"cnn_bn", "spatial=2x1,pipeline=2", 2, one_f_one_b}),
                                        synchronised({"cnn_bn", "data=2,pipeline=2", 1, one_f_one_b}),
                                        updated({"cnn", "tensor=2"}, OptimizerKind::lamb),
                                        updated({"cnn", "tensor=2"}, OptimizerKind::lars),
                                        updated({"llama", "tensor=2"}, OptimizerKind::lars),
                                        updated({"cnn", "data=2,tensor=2", 1, gpipe, 1, 1}, OptimizerKind::lamb),
                                        updated({"cnn", "tensor=2"}, OptimizerKind::adam),
                                        updated({"cnn", "spatial=2x1"}, OptimizerKind::adamw),
                                        updated({"cnn", "data=2", 1, gpipe, 1, 1}, OptimizerKind::adamw),
                                        updated({"llama", "tensor=2"}, OptimizerKind::adamw),
                                        updated({"llama", "pipeline=2", 2, one_f_one_b}, OptimizerKind::adamw),
                                        updated({"llama", "data=2", 1, gpipe, 1, 3}, OptimizerKind::adam),
                                        updated({"llama", "data=2,tensor=2", 1, gpipe, 1, 2}, OptimizerKind::adamw)),
                         name_of);

// Split no farther than the user says: what follows is whole on every rank.
INSTANTIATE_TEST_SUITE_P(Until, Sharded,
                         of_these_ranks(until({"cnn", "spatial=2x1"}, "conv2"), until({"cnn", "filter=2"}, "conv4"),
                                        until({"cnn", "channel=2"}, "conv1"), until({"cnn", "spatial=2x2"}, "conv4"),
                                        until({"cnn", "data=2,filter=2", 1, gpipe, 1, 2}, "conv3"),
                                        until({"unet", "spatial=2x1x1"}, "down1")),
                         name_of);

INSTANTIATE_TEST_SUITE_P(Halves, Sharded,
                         of_these_ranks(halved({"gpt2", "data=2"}), halved({"gpt2", "tensor=2"}),
                                        halved({"llama", "sequence=2"}), halved({"cnn", "tensor=2"}),
                                        halved({"cnn", "spatial=2x1"}), halved(synchronised("cnn_bn", "data=2")),
                                        halved({"gpt2", "pipeline=2", 4, zero_bubble}),
                                        halved({"llama", "data=2,tensor=2", 1, gpipe, 1, 3})),
                         name_of);

}  // namespace
}  // namespace sibyl::trainer
