// SPDX-License-Identifier: MIT OR Apache-2.0
//
// peer.cpp - the same cases in PyTorch's C++ library, behind the line protocol of worker.c.
//
// It owns no measurement of its own choosing: case names, sizes and iterations come from
// burn-bench, which runs its rounds between its own. Built by build.sh against the libtorch of a
// Python environment. Threads are set by OMP_NUM_THREADS, which torch reads at its start. To add
// a case: a class with run(), a line in make_case().
#include <torch/torch.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace F = torch::nn::functional;

namespace {

double now()
{
    using clock = std::chrono::steady_clock;
    return std::chrono::duration<double>(clock::now().time_since_epoch()).count();
}

struct Case {
    virtual ~Case() = default;
    virtual void run(int64_t n) = 0;
};

// ---- single ops ---------------------------------------------------------------------------------

struct Add : Case {
    torch::Tensor a, b;
    explicit Add(int64_t elements)
        : a(torch::rand({elements})), b(torch::rand({elements}))
    {
    }
    void run(int64_t n) override
    {
        torch::NoGradGuard guard;
        for (int64_t i = 0; i < n; i++) {
            torch::Tensor sum = at::add(a, b);
        }
    }
};

struct AddChain64 : Add {
    using Add::Add;
    void run(int64_t n) override
    {
        torch::NoGradGuard guard;
        for (int64_t i = 0; i < n; i++) {
            torch::Tensor y = a;
            for (int k = 0; k < 64; k++) {
                y = at::add(y, b);
            }
        }
    }
};

// Into memory that is there already: the peer's best case for large tensors.
struct AddOut : Add {
    torch::Tensor sum;
    explicit AddOut(int64_t elements) : Add(elements), sum(torch::zeros({elements})) {}
    void run(int64_t n) override
    {
        torch::NoGradGuard guard;
        for (int64_t i = 0; i < n; i++) {
            at::add_out(sum, a, b);
        }
    }
};

// One operand, a result that is there already where the library can use it. Lines are 1024 long.
struct Mem : Case {
    torch::Tensor a, b, out;
    std::string name;
    Mem(const std::string &op, int64_t elements) : name(op)
    {
        const bool folds = op == "sum" || op == "sum_rows" || op == "sum_columns" ||
                           op == "max_rows";
        const bool flat = op == "sum" || (!folds && op != "softmax" && op != "layer_norm");
        a = flat ? torch::rand({elements}) : torch::rand({elements / 1024, 1024});
        if (op == "transpose") {
            int64_t side = 64;
            while ((side + 64) * (side + 64) <= elements) {
                side += 64;
            }
            a = torch::rand({side, side}).t();
        }
        b = op == "mul" ? torch::rand({elements}) : torch::Tensor();
        out = folds ? torch::Tensor() : torch::zeros(a.sizes());
    }
    void once()
    {
        if (name == "mul") {
            at::mul_out(out, a, b);
        } else if (name == "relu") {
            at::clamp_min_out(out, a, 0);
        } else if (name == "copy" || name == "transpose") {
            out.copy_(a);
        } else if (name == "sum") {
            torch::Tensor all = at::sum(a);
        } else if (name == "sum_rows" || name == "sum_columns") {
            torch::Tensor sums = at::sum(a, name == "sum_rows" ? 1 : 0);
        } else if (name == "max_rows") {
            torch::Tensor largest = at::amax(a, 1);
        } else if (name == "softmax") {
            at::_softmax_out(out, a, -1, false);
        } else if (name == "layer_norm") {
            torch::Tensor y = at::layer_norm(a, {1024});
        } else if (name == "exp") {
            at::exp_out(out, a);
        } else {
            at::tanh_out(out, a);
        }
    }
    void run(int64_t n) override
    {
        torch::NoGradGuard guard;
        for (int64_t i = 0; i < n; i++) {
            once();
        }
    }
};

struct AddTape : Add {
    explicit AddTape(int64_t elements) : Add(elements) { a.set_requires_grad(true); }
    void run(int64_t n) override
    {
        for (int64_t i = 0; i < n; i++) {
            torch::Tensor sum = at::add(a, b);
        }
    }
};

struct AddTape100 : AddTape {
    using AddTape::AddTape;
    void run(int64_t n) override
    {
        const torch::Tensor seed = torch::ones_like(b);
        for (int64_t i = 0; i < n; i++) {
            torch::Tensor y = a;
            for (int k = 0; k < 100; k++) {
                y = at::add(y, b);
            }
            auto grads = torch::autograd::grad({y}, {a}, {seed});
        }
    }
};

struct Sgemm : Case {
    torch::Tensor a, b;
    explicit Sgemm(int64_t size) : a(torch::rand({size, size})), b(torch::rand({size, size})) {}
    void run(int64_t n) override
    {
        torch::NoGradGuard guard;
        for (int64_t i = 0; i < n; i++) {
            torch::Tensor product = at::matmul(a, b);
        }
    }
};

// ---- chains, as written -------------------------------------------------------------------------

// The last result lives until the next iteration. Lines are 1024 long.
struct Chain : Case {
    torch::Tensor a, b, last, beside;
    std::string name;
    Chain(const std::string &chain, int64_t elements) : name(chain)
    {
        const bool flat = chain == "chain8";
        a = flat ? torch::randn({elements}) : torch::randn({elements / 1024, 1024});
        b = torch::randn(a.sizes());
    }
    torch::Tensor chain8() const
    {
        torch::Tensor y = at::add(a, b);
        y = at::mul(y, b);
        y = at::sub(y, a);
        y = at::relu(y);
        y = at::maximum(y, b);
        y = at::mul(y, a);
        y = at::abs(y);
        return at::add(y, b);
    }
    torch::Tensor softmax() const
    {
        torch::Tensor e = at::exp(at::sub(a, at::amax(a, {-1}, true)));
        return at::div(e, at::sum(e, {-1}, true));
    }
    torch::Tensor layer_norm() const
    {
        torch::Tensor centred = at::sub(a, at::mean(a, {-1}, true));
        torch::Tensor variance = at::var(a, {-1}, false, true);
        return at::div(centred, at::sqrt(at::add(variance, 1e-5)));
    }
    torch::Tensor bias_backward()
    {
        beside = at::where(at::gt(b, 0.0), a, 0.0);
        return at::sum(beside, {0});
    }
    torch::Tensor turned() const
    {
        torch::Tensor transposed = b.reshape({1024, -1}).t();
        return at::mul(at::relu(at::add(a, transposed)), a);
    }
    torch::Tensor once()
    {
        if (name == "masked_softmax") {
            return at::softmax(at::add(at::mul(a, 0.125), b), -1);
        }
        if (name == "residual_norm") {
            return at::layer_norm(at::add(a, b), {1024});
        }
        return name == "chain8"          ? chain8()
               : name == "softmax_parts" ? softmax()
               : name == "bias_backward" ? bias_backward()
               : name == "turned"        ? turned()
                                         : layer_norm();
    }
    void run(int64_t n) override
    {
        torch::NoGradGuard guard;
        for (int64_t i = 0; i < n; i++) {
            last = once();
        }
    }
};

// What torch.optim.AdamW(fused=True) calls, over the parameters of cases_adam.c.
struct FusedAdamW : Case {
    std::vector<torch::Tensor> params, grads, first, second, steps;
    explicit FusedAdamW(int64_t total)
    {
        int64_t left = total;
        for (int64_t share : {167, 167, 125, 125, 84, 84, 63, 42, 42, 31, 21, 14, 11, 9, 6}) {
            add(total * share / 1000);
            left -= total * share / 1000;
        }
        add(left);
    }
    void add(int64_t n)
    {
        params.push_back(torch::randn({n}));
        grads.push_back(torch::randn({n}));
        first.push_back(torch::zeros({n}));
        second.push_back(torch::zeros({n}));
        steps.push_back(torch::zeros({}));
    }
    void run(int64_t n) override
    {
        torch::NoGradGuard guard;
        for (int64_t i = 0; i < n; i++) {
            at::_foreach_add_(steps, 1);
            at::_fused_adamw_(params, grads, first, second, {}, steps, 1e-3, 0.9, 0.999, 0.01, 1e-8,
                              false, false);
        }
    }
};

// ---- training steps -----------------------------------------------------------------------------

struct Step : Case {
    torch::nn::Sequential net;
    torch::Tensor x, y;
    std::unique_ptr<torch::optim::Optimizer> optimizer;
    void run(int64_t n) override
    {
        for (int64_t i = 0; i < n; i++) {
            optimizer->zero_grad();
            loss(net->forward(x)).backward();
            optimizer->step();
        }
    }
    virtual torch::Tensor loss(const torch::Tensor &out) { return F::cross_entropy(out, y); }
    void use_momentum()
    {
        const auto options = torch::optim::SGDOptions(0.01).momentum(0.9);
        optimizer = std::make_unique<torch::optim::SGD>(net->parameters(), options);
    }
};

struct Mlp : Step {
    explicit Mlp(int64_t batch)
    {
        net = torch::nn::Sequential(torch::nn::Linear(784, 128), torch::nn::ReLU(),
                                    torch::nn::Linear(128, 10));
        use_momentum();
        x = torch::randn({batch, 784});
        y = torch::randint(0, 10, {batch});
    }
};

struct LeNet : Step {
    explicit LeNet(int64_t batch)
    {
        using torch::nn::Conv2dOptions;
        net = torch::nn::Sequential(
            torch::nn::Conv2d(Conv2dOptions(1, 6, 5).padding(2)), torch::nn::ReLU(),
            torch::nn::MaxPool2d(2), torch::nn::Conv2d(Conv2dOptions(6, 16, 5)), torch::nn::ReLU(),
            torch::nn::MaxPool2d(2), torch::nn::Flatten(), torch::nn::Linear(400, 120),
            torch::nn::ReLU(), torch::nn::Linear(120, 84), torch::nn::ReLU(),
            torch::nn::Linear(84, 10));
        use_momentum();
        x = torch::randn({batch, 1, 28, 28});
        y = torch::randint(0, 10, {batch});
    }
};

constexpr int64_t kWidth = 256;
constexpr int64_t kHeads = 4;
constexpr int64_t kLength = 128;

struct BlockImpl : torch::nn::Module {
    torch::nn::LayerNorm norm1{nullptr}, norm2{nullptr};
    torch::nn::Linear qkv{nullptr}, proj{nullptr}, fc1{nullptr}, fc2{nullptr};
    BlockImpl()
    {
        const torch::nn::LayerNormOptions norm_options({kWidth});
        norm1 = register_module("norm1", torch::nn::LayerNorm(norm_options));
        qkv = register_module("qkv", torch::nn::Linear(kWidth, 3 * kWidth));
        proj = register_module("proj", torch::nn::Linear(kWidth, kWidth));
        norm2 = register_module("norm2", torch::nn::LayerNorm(norm_options));
        fc1 = register_module("fc1", torch::nn::Linear(kWidth, 4 * kWidth));
        fc2 = register_module("fc2", torch::nn::Linear(4 * kWidth, kWidth));
    }
    torch::Tensor attend(const torch::Tensor &x)
    {
        auto parts = qkv->forward(x)
                         .view({x.size(0), x.size(1), 3, kHeads, kWidth / kHeads})
                         .permute({2, 0, 3, 1, 4})
                         .unbind(0);
        auto mixed = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
        return proj->forward(mixed.transpose(1, 2).reshape(x.sizes()));
    }
    torch::Tensor forward(torch::Tensor x)
    {
        x = x + attend(norm1->forward(x));
        return x + fc2->forward(at::gelu(fc1->forward(norm2->forward(x))));
    }
};
TORCH_MODULE(Block);

struct BlockStep : Step {
    explicit BlockStep(int64_t batch)
    {
        net = torch::nn::Sequential(Block());
        optimizer = std::make_unique<torch::optim::AdamW>(
            net->parameters(), torch::optim::AdamWOptions(1e-4).weight_decay(0.01));
        x = torch::randn({batch, kLength, kWidth});
        y = torch::randn({batch, kLength, kWidth});
    }
    torch::Tensor loss(const torch::Tensor &out) override { return at::mse_loss(out, y); }
};

std::unique_ptr<Case> make_case(const std::string &name, int64_t arg)
{
    if (name == "add") {
        return std::make_unique<Add>(arg);
    }
    if (name == "add_out") {
        return std::make_unique<AddOut>(arg);
    }
    if (name == "add_chain64") {
        return std::make_unique<AddChain64>(arg);
    }
    if (name == "add_tape") {
        return std::make_unique<AddTape>(arg);
    }
    if (name == "add_tape100") {
        return std::make_unique<AddTape100>(arg);
    }
    for (const char *mem : {"mul", "relu", "copy", "transpose", "sum", "sum_rows", "sum_columns",
                            "max_rows", "softmax", "layer_norm", "exp", "tanh"}) {
        if (name == mem) {
            return std::make_unique<Mem>(name, arg);
        }
    }
    for (const char *chain : {"chain8", "softmax_parts", "layer_norm_parts", "bias_backward",
                              "turned", "masked_softmax", "residual_norm"}) {
        if (name == chain) {
            return std::make_unique<Chain>(name, arg);
        }
    }
    if (name == "adamw") {
        return std::make_unique<FusedAdamW>(arg);
    }
    if (name == "sgemm") {
        return std::make_unique<Sgemm>(arg);
    }
    if (name == "step_mlp") {
        return std::make_unique<Mlp>(arg);
    }
    if (name == "step_lenet") {
        return std::make_unique<LeNet>(arg);
    }
    if (name == "step_block") {
        return std::make_unique<BlockStep>(arg);
    }
    return nullptr;
}

// ---- protocol -----------------------------------------------------------------------------------

class Server {
    std::unique_ptr<Case> current;
    double estimate = 0; // seconds per iteration

    double timed(int64_t n)
    {
        const double start = now();
        current->run(n);
        return now() - start;
    }

    void prepare(const char *name, int64_t arg)
    {
        current.reset();
        torch::manual_seed(1);
        current = make_case(name, arg);
        if (current == nullptr) {
            std::printf("no such case: %.60s\n", name);
            return;
        }
        timed(1);
        double seconds = 0;
        int64_t n = 1;
        while ((seconds = timed(n)) <= 0.02) {
            n *= 2;
        }
        estimate = seconds / static_cast<double>(n);
        std::printf("ok\n");
    }

    void round(double seconds)
    {
        if (current == nullptr) {
            std::printf("no case is prepared\n");
            return;
        }
        int64_t n = static_cast<int64_t>(seconds / estimate);
        n = n < 1 ? 1 : n;
        timed(n / 5); // as worker.c does
        estimate = timed(n) / static_cast<double>(n);
        std::printf("ok %.9e %lld\n", estimate, static_cast<long long>(n));
    }

public:
    void answer(const char *line)
    {
        char name[64];
        long long arg = 0;
        double seconds = 0;
        if (std::sscanf(line, "prepare %63s %lld", name, &arg) == 2) {
            prepare(name, arg);
        } else if (std::sscanf(line, "round %lf", &seconds) == 1) {
            round(seconds);
        } else if (std::strncmp(line, "done", 4) == 0) {
            current.reset();
            std::printf("ok\n");
        } else {
            std::printf("no such request\n");
        }
    }
};

int first_result()
{
    const torch::Tensor a = torch::ones({4});
    std::printf("%g\n", (a + a)[0].item<double>());
    std::fflush(stdout);
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc > 1 && std::strcmp(argv[1], "--first-result") == 0) {
        return first_result();
    }
    Server server;
    char line[256];
    while (std::fgets(line, sizeof(line), stdin) != nullptr) {
        try {
            server.answer(line);
        } catch (const std::exception &error) {
            const std::string text = error.what();
            std::printf("no %s\n", text.substr(0, text.find('\n')).c_str());
        }
        std::fflush(stdout);
    }
    return 0;
}
