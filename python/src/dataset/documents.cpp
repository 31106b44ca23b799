// penstock.documents: the documents in files of tokens.

#include "penstock/documents.h"

#include "bindings.h"
#include "call/arguments.h"
#include "content/archive.h"
#include "core/format.h"
#include "dataset/handles.h"
#include "interpreter/convert.h"
#include "interpreter/interrupt.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

Dataset documents_of(nb::handle source, const DocumentsOptions& options) {
  if (nb::isinstance<PyLazyTensor>(source)) {
    if (options.sequences) {
      throw Error(ErrorCode::kInvalidArgument,
                  "found sequences=True beside an array of tokens, expected it beside a file of Megatron's");
    }
    if (!options.begin) {
      throw Error(ErrorCode::kInvalidArgument,
                  "found an array of tokens without begin=, expected the token that each document begins with");
    }
    return interruptible(true, [tokens = nb::cast<PyLazyTensor>(source).tensor, options](std::stop_token) {
      return documents(tokens, *options.begin, options.mmap);
    });
  }
  if (is_path(source)) {
    return interruptible(true,
                         [path = path_from(source), options](std::stop_token) { return documents(path, options); });
  }
  return interruptible(true,
                       [paths = paths_from(source), options](std::stop_token) { return documents(paths, options); });
}

Typed<Dataset> documents_with(nb::handle source, nb::handle sequences, nb::handle begin, nb::handle mmap) {
  DocumentsOptions options{.sequences = flag_argument(sequences, "sequences")};
  if (!begin.is_none()) options.begin = integer_argument(begin, "begin");
  if (!mmap.is_none()) options.mmap = flag_argument(mmap, "mmap");
  const bool is_one = is_path(source) || nb::isinstance<PyLazyTensor>(source);
  const nb::object kept = kept_list(source, is_one);
  return made_by("documents", nb::make_tuple(kept, nb::borrow(sequences), nb::borrow(begin), nb::borrow(mmap)),
                 nb::cast(documents_of(kept, options)));
}

}  // namespace

void bind_documents(nb::module_& module) {
  module.def("documents", documents_with, nb::arg("source").none(), nb::arg("sequences"), nb::arg("begin").none(),
             nb::arg("mmap").none());
}

}  // namespace penstock::python
