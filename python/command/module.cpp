// The command inside of the Python package: a second module, `_command`, in the shared object of `_core`, so that a
// wheel holds the library once. It shares nothing with `_core`: launcher.py loads it alone, without the types of the
// bindings.

#include <Python.h>
#include <unistd.h>

#include <array>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "cli/program.h"

namespace {

/// The interpreter has changed the handling of signals, the locale and, by PYTHONUNBUFFERED, stdout's buffer. The
/// command finds them as a program of its own does.
void leave_interpreter() {
  struct sigaction action {};
  // Where SIGINT is ignored, as of a shell's background jobs, the interpreter has left it so.
  if (::sigaction(SIGINT, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) std::signal(SIGINT, SIG_DFL);
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_DFL);
  std::setlocale(LC_ALL, "C");
  static std::array<char, BUFSIZ> buffer;
  std::setvbuf(stdout, buffer.data(), ::isatty(STDOUT_FILENO) == 1 ? _IOLBF : _IOFBF, buffer.size());
}

/// run(words): the command on a list of bytes. Ends the process as `main` does, without the interpreter's own end.
PyObject* run(PyObject*, PyObject* list) {
  const Py_ssize_t count = PyList_Size(list);
  if (count < 0) return nullptr;
  std::vector<char*> words;
  for (Py_ssize_t i = 0; i < count; ++i) {
    words.push_back(PyBytes_AsString(PyList_GetItem(list, i)));
    if (words.back() == nullptr) return nullptr;
  }
  leave_interpreter();
  if (PyErr_CheckSignals() != 0) return nullptr;  // Ctrl-C until here
  PyEval_SaveThread();
  std::exit(penstock::cli::run_program(words));
}

std::array methods = {PyMethodDef{"run", run, METH_O, nullptr}, PyMethodDef{}};

#ifdef Py_GIL_DISABLED
// An interpreter without its lock need not take it.
std::array slots = {PyModuleDef_Slot{Py_mod_gil, Py_MOD_GIL_NOT_USED}, PyModuleDef_Slot{}};
#else
std::array slots = {PyModuleDef_Slot{}};
#endif

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_command", nullptr, 0,      methods.data(),
                          slots.data(),          nullptr,    nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__command() { return PyModuleDef_Init(&definition); }
