// The groups of a rank that trains by itself.
#pragma once

#include "trainer/mesh_groups.h"

namespace sibyl::trainer {

inline const MeshGroups alone;

}  // namespace sibyl::trainer
