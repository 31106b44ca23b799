// Assigning to a temporary handle would change nothing, and say nothing: t[1] = row, value["epoch"] = 4.
#include "tables.h"

namespace ps = penstock;

ASSIGNS_TO_NAMES_ALONE(ps::Archive);
ASSIGNS_TO_NAMES_ALONE(ps::Batch);
ASSIGNS_TO_NAMES_ALONE(ps::BatchOrder);
ASSIGNS_TO_NAMES_ALONE(ps::BatchSampler);
ASSIGNS_TO_NAMES_ALONE(ps::Buffer);
ASSIGNS_TO_NAMES_ALONE(ps::Collate);
ASSIGNS_TO_NAMES_ALONE(ps::DType);
ASSIGNS_TO_NAMES_ALONE(ps::Dataset);
ASSIGNS_TO_NAMES_ALONE(ps::Device);
ASSIGNS_TO_NAMES_ALONE(ps::Event);
ASSIGNS_TO_NAMES_ALONE(ps::LazyTensor);
ASSIGNS_TO_NAMES_ALONE(ps::Order);
ASSIGNS_TO_NAMES_ALONE(ps::SampleStream);
ASSIGNS_TO_NAMES_ALONE(ps::Sampler);
ASSIGNS_TO_NAMES_ALONE(ps::Shape);
ASSIGNS_TO_NAMES_ALONE(ps::Source);
ASSIGNS_TO_NAMES_ALONE(ps::Stream);
ASSIGNS_TO_NAMES_ALONE(ps::Tensor);
ASSIGNS_TO_NAMES_ALONE(ps::Value);
ASSIGNS_TO_NAMES_ALONE(ps::WritableArchive);
static_assert(std::is_assignable_v<ps::DataLoader&, ps::DataLoader> &&
              !std::is_assignable_v<ps::DataLoader, ps::DataLoader>);
static_assert(std::is_assignable_v<ps::Writer&, ps::Writer> && !std::is_assignable_v<ps::Writer, ps::Writer>);

// Handles are members of classes before they are anything.
template <class... Handle>
constexpr bool kMadeOfNothing = (std::is_default_constructible_v<Handle> && ...);
static_assert(
    kMadeOfNothing<ps::Archive, ps::BatchSampler, ps::Buffer, ps::Collate, ps::DType, ps::DataLoader, ps::Dataset,
                   ps::Device, ps::Event, ps::LazyTensor, ps::Order, ps::SampleStream, ps::Sampler, ps::Shape,
                   ps::Source, ps::Stream, ps::Tensor, ps::Value, ps::WritableArchive, ps::Writer>);

REFUSES((Tensor t), t[1] = t, t[1].copy_from(t));
REFUSES((Tensor t), t[1] = ps::Tensor(), t[1].copy_from(t));
REFUSES((Tensor t), t.slice(0, 1, 2) = t, t.slice(0, 1, 2).copy_from(t));
REFUSES((Tensor t), t.select(0, 1) = t, t.select(0, 1).copy_from(t));
REFUSES((Tensor t), t.reshape({2}) = t, t = t.reshape({2}));
REFUSES((Tensor t), t.device() = "cuda:0", t = t.to("cuda:0"));
REFUSES((Tensor t), t[0].shape()[0] = 1, t = t.reshape({1}));
REFUSES((Value v), v["epoch"] = 4, v = v.with("epoch", 4));
REFUSES((Value v), v["epoch"] = v, v = v.with("epoch", v));
REFUSES((Value v), v[0] = "x", v = v.with(0, "x"));
REFUSES((Value v), *v.begin() = "x", v = *v.begin());
REFUSES((Value v), (*v.items().begin()).second = 4, v = (*v.items().begin()).second);
REFUSES((Value v), *v.find("epoch") = 4, v = *v.find("epoch"));
REFUSES((Dataset d), d[0] = ps::Value(), d.get(0));
REFUSES((Batch b, Tensor t), b["x"] = t, b["x"].copy_from(t));
REFUSES((Batch b, Tensor t), b[0] = t, b[0].copy_from(t));
REFUSES((Batch b, Tensor t), b.tensor() = t, b.tensor().copy_from(t));
REFUSES((WritableArchive a, Tensor t), a["w"] = t, a["w"].copy_from(t));
REFUSES((WritableArchive a, Tensor t), a.tensor() = t, a.tensor().copy_from(t));
REFUSES((Archive a), a["w"] = a["w"], a["w"].load());
REFUSES((Archive a), a["w"].slice(0, 0, 1) = a["w"], a["w"].slice(0, 0, 1).load());
REFUSES((Archive a), a.part("x") = a, a = a.part("x"));

// What is given by value, of a class that assigns to temporaries as all of the standard library do.
REFUSES((Value v), v.find("epoch") = v, v = *v.find("epoch"));
REFUSES((Value v), v.find("epoch").emplace(v), v.find("epoch").value());
REFUSES((Value v), v.state() = v, v.state().value());
REFUSES((Value v), v.item(0) = v.item(0), v.item(0).second);
REFUSES((Value v), v["name"].as_string() = "x", v = v.with("name", "x"));
REFUSES((Value v), v["name"].as_string() += "x", v["name"].as_string() + "x");
REFUSES((Value v), v["name"].type_name() = "x", v["name"].type_name());
REFUSES((Tensor t), t[0].template at<ps::float16>(0) = ps::float16(), t.template at<ps::float16>(0, 0) = ps::float16());
REFUSES((Tensor t), t[0].template at<ps::bfloat16>(0) = {}, t.template at<ps::bfloat16>(0, 0) = {});
REFUSES((Tensor t), t[0].template at<std::complex<float>>(0) += 1.0F, t.template at<std::complex<float>>(0, 0) += 1.0F);
REFUSES((Tensor t), t[0].template at<float>(0) = 1.0F, t.template at<float>(0, 0) = 1.0F);
REFUSES((Value v), v.template get<std::string>() = "x", v = v.with("name", v.template get<std::string>() + "x"));
REFUSES((Value v), v.template get<std::vector<int>>()[0] = 1, v.template get<std::vector<int>>()[0] == 1);
REFUSES((Value v), v.value_or("name", "x") = "y", v.value_or("name", "x") == "y");
REFUSES((Value v), v.as_complex() = 1.0, v.as_complex() == 1.0);
REFUSES((Value v), v.entry_index() = 1, v.entry_index().value());
REFUSES((Tensor t), t.template values<float>() = {}, t.template values<float>()[0] = 1);
REFUSES((Tensor t), t.strings()[0] = "x", t.strings()[0] == "x");
REFUSES((Tensor t), t.device().index = 1, t = t.cuda(1));
REFUSES((Tensor t), t.template item<std::complex<float>>() = 1.0F, t.template item<std::complex<float>>() == 1.0F);
REFUSES((Tensor t), t.shape().dims() = {}, t.shape().rank() == 0);
REFUSES((Tensor t), t.dtype().name() = "x", t.dtype().name() == "x");
REFUSES((Dataset d), d.paths()[0] = "x", d.paths()[0] == "x");
REFUSES((Dataset d), d.classes() = {"x"}, d.classes()[0] == "x");
REFUSES((Dataset d), d.describe(0) = "x", d.describe(0) == "x");
REFUSES((Archive a), a.entries() = {}, a.entries().size());
REFUSES((Archive a), a.format() = "x", a.format() == "x");
REFUSES((WritableArchive a), a.entries() = {}, a.entries().size());
REFUSES((DataLoader l), l.position().dataset = "x", l.position().dataset == "x");
REFUSES((DataLoader l), l.position() = {}, l.seek(l.position()));
REFUSES((DataLoader l), l.stats().batches = 0, l.stats().batches == 0);
REFUSES((DataLoader l), l.set_aside().clear(), l.set_aside().empty());
REFUSES((DataLoader l), (*l.begin()).value = 1, (*l.begin()).value.size());
REFUSES((Error e), e.offset() = 1, e.offset().value());
REFUSES((Archive a), a["w"].name() = "x", a["w"].name());
REFUSES((Archive a), a["w"].entry().name = "x", a["w"].entry().name);
REFUSES((Archive a), a["w"].storage().name = "x", a["w"].storage().name);
