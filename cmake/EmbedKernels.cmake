# cmake -DOUTPUT=FILE -DINPUTS=A.ptx,B.ptx -P EmbedKernels.cmake: the source of penstock::device::cuda::kernel_modules().

string(REPLACE "," ";" INPUTS "${INPUTS}")
set(rows)
foreach(input IN LISTS INPUTS)
  cmake_path(GET input STEM name)
  file(READ "${input}" text)
  string(APPEND rows "    {\"${name}\", R\"PTX(${text})PTX\"},\n")
endforeach()
# Compilers need not take literals of this length, but all do.
file(WRITE "${OUTPUT}" "#include \"device/cuda/kernels.h\"

#pragma GCC diagnostic ignored \"-Woverlength-strings\"

namespace penstock::device::cuda {
namespace {

constexpr KernelModule kModules[] = {
${rows}};

}  // namespace

std::span<const KernelModule> kernel_modules() noexcept { return kModules; }

}  // namespace penstock::device::cuda
")
