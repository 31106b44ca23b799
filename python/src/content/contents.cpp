#include "content/contents.h"

#include <cstring>
#include <memory>

#include "interpreter/convert.h"
#include "interpreter/interrupt.h"
#include "io/locations.h"

namespace penstock::python {

Buffer memory_of(nb::handle data) {
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(data.ptr(), view.get(), PyBUF_SIMPLE) != 0) nb::raise_python_error();
  auto* bytes = static_cast<std::byte*>(view->buf);
  const auto size = static_cast<std::size_t>(view->len);
  const std::shared_ptr<const void> owner(view.release(), [](const void* held) {
    auto* buffer = static_cast<Py_buffer*>(const_cast<void*>(held));
    let_go_with_gil([buffer] { PyBuffer_Release(buffer); });
    delete buffer;
  });
  return Buffer::wrap(bytes, size, owner, true);
}

bool is_path_not_content(nb::handle given) {
  if (PyBytes_Check(given.ptr()) == 0) return is_path(given);
  const auto size = static_cast<std::size_t>(PyBytes_GET_SIZE(given.ptr()));
  return std::memchr(PyBytes_AS_STRING(given.ptr()), 0, size) == nullptr;
}

Source source_given(nb::handle given, OpenPath open, const std::string& name) {
  const auto at = [open](const std::string& path) {
    return interruptible(io::waits_for_server(path), [open, path](std::stop_token) { return open(path); });
  };
  if (nb::isinstance<PySource>(given)) return nb::cast<PySource>(given).source;
  if (PyBytes_Check(given.ptr()) == 0 && is_path(given)) return at(path_from(given));
  const nb::object content = nb::module_::import_("penstock._files.contents").attr("content")(given);
  const nb::object bytes = content[0];
  if (bytes.is_none()) return at(path_from(content[1]));
  return memory_source(memory_of(bytes), name.empty() ? name_from(content[1]) : name);
}

}  // namespace penstock::python
