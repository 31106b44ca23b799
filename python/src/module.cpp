#include "bindings.h"
#include "call/progress.h"
#include "file/writer.h"
#include "interpreter/interrupt.h"
#include "penstock/version.h"

namespace penstock::python {
namespace {

void bind_all(nb::module_& module) {
  module.doc() = "The compiled part of penstock; use it through the package `penstock`.";
  module.attr("_version") = PENSTOCK_VERSION_STRING;
  bind_errors(module);
  bind_user_functions(module);
  bind_dtype(module);
  bind_devices(module);
  bind_transfers(module);
  bind_doctor(module);
  bind_tensor(module);
  bind_moves(module);
  bind_elementwise(module);
  bind_creation(module);
  bind_reductions(module);
  bind_products(module);
  bind_dlpack(module);
  bind_torch_memory(module);
  bind_archive(module);
  bind_sources(module);
  bind_parts(module);
  bind_typed_parts(module);
  bind_dcp(module);
  bind_progress(module);
  bind_files(module);
  bind_raw(module);
  bind_outputs(module);
  bind_writer(module);
  bind_writable(module);
  bind_datasets(module);
  bind_rows_and_files(module);
  bind_own_code(module);
  bind_collates(module);
  bind_samplers(module);
  bind_documents(module);
  bind_lengths(module);
  bind_mix(module);
  bind_pairs(module);
  bind_labels(module);
  bind_shards(module);
  bind_streams(module);
  bind_loader(module);
  bind_feed(module);
  bind_workers(module);
  bind_checks(module);
  bind_placed(module);
  bind_blocks(module);
  bind_lent(module);
}

}  // namespace
}  // namespace penstock::python

NB_MODULE(_core, module) {
  // Objects that other libraries still hold at exit are theirs to release.
  nb::set_leak_warnings(false);
  penstock::python::bind_all(module);
  penstock::python::Running::wait_for_all_at_exit();
}
