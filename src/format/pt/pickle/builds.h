#pragma once

// What BUILD does to the objects that the callables made (torch_rebuild.cpp, numpy_calls.cpp). kCorrupt for a state
// that they do not have.

namespace penstock::format::pickle {

struct Cell;
class World;

void build_tensor(World& world, Cell* tensor, Cell* state);
void build_empty_tensor(World& world, Cell* object, Cell* state);
void build_numpy_array(World& world, Cell* array, Cell* state);

}  // namespace penstock::format::pickle
