#pragma once

// nanobind, by the short name that all of the bindings have for it.

#include <nanobind/nanobind.h>

namespace nb = nanobind;
