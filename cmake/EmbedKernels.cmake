# cmake -DOUTPUT=FILE -DINPUTS=A.ptx,B.ptx -P EmbedKernels.cmake: the source of penstock::device::kernel_modules().

string(REPLACE "," ";" INPUTS "${INPUTS}")
set(rows)
foreach(input IN LISTS INPUTS)
  cmake_path(GET input STEM name)
  file(READ "${input}" text)
  string(LENGTH "${text}" length)
  string(APPEND rows "    {\"${name}\", {R\"PTX(${text})PTX\", ${length}}},\n")
endforeach()
file(WRITE "${OUTPUT}" "#include \"device/kernel_modules.h\"

namespace penstock::device {
namespace {

constexpr KernelModule kModules[] = {
${rows}};

}  // namespace

std::span<const KernelModule> kernel_modules() noexcept { return kModules; }

}  // namespace penstock::device
")
