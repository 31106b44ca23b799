#pragma once

// The extension module penstock._core: one function for each subject adds its names to the module.
// Rooms: interpreter/ (its lock, signals, small values), arrays/ (of other libraries), call/ (arguments, progress),
// tensor/, content/ (what a file holds, as Python's objects; functions of the program), file/ (opening, loading,
// saving), dataset/, worker/ (processes), loader/.

#include <string>

#include "interpreter/nanobind.h"
#include "penstock/error.h"

namespace penstock::python {

/// Sets the Python exception that `error` arrives as, where no exception of C++ may pass.
void set_python_error(const Error& error) noexcept;
/// The exception of penstock.errors that `error` arrives as; what a function of the program raised is its __cause__.
nb::object exception_of(const Error& error);
/// Issues a warning at the line of the program that called the package.
void warn(nb::handle category, const std::string& text);

void bind_errors(nb::module_& module);
void bind_user_functions(nb::module_& module);
void bind_dtype(nb::module_& module);
void bind_devices(nb::module_& module);
void bind_transfers(nb::module_& module);
void bind_doctor(nb::module_& module);
void bind_tensor(nb::module_& module);
void bind_moves(nb::module_& module);
void bind_elementwise(nb::module_& module);
void bind_creation(nb::module_& module);
void bind_reductions(nb::module_& module);
void bind_products(nb::module_& module);
void bind_dlpack(nb::module_& module);
void bind_torch_memory(nb::module_& module);
void bind_archive(nb::module_& module);
void bind_sources(nb::module_& module);
void bind_parts(nb::module_& module);
void bind_typed_parts(nb::module_& module);
void bind_dcp(nb::module_& module);
void bind_files(nb::module_& module);
void bind_raw(nb::module_& module);
void bind_progress(nb::module_& module);
void bind_outputs(nb::module_& module);
void bind_writer(nb::module_& module);
/// Behind bind_archive, to whose `open` it adds the one that writes.
void bind_writable(nb::module_& module);
void bind_datasets(nb::module_& module);
// Behind bind_datasets, to whose class they add, or whose class they return.
void bind_rows_and_files(nb::module_& module);
void bind_own_code(nb::module_& module);
void bind_documents(nb::module_& module);
void bind_lengths(nb::module_& module);
void bind_mix(nb::module_& module);
void bind_pairs(nb::module_& module);
void bind_labels(nb::module_& module);
void bind_shards(nb::module_& module);
void bind_streams(nb::module_& module);
void bind_collates(nb::module_& module);
void bind_samplers(nb::module_& module);
void bind_loader(nb::module_& module);
void bind_feed(nb::module_& module);
void bind_workers(nb::module_& module);
void bind_checks(nb::module_& module);
void bind_placed(nb::module_& module);
void bind_blocks(nb::module_& module);
void bind_lent(nb::module_& module);

}  // namespace penstock::python
