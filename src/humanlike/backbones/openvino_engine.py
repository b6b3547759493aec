"""OpenVINO as the engine of a torch network on the CPU: the same features, faster (extra `openvino`)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from humanlike.backbones.arithmetic import fixed_arithmetic
from humanlike.backbones.layers import ModuleBackbone

# OpenVINO's names of the types. It would choose bfloat16 by itself where the CPU has it.
PRECISIONS: Mapping[str, str] = {"float32": "f32", "bfloat16": "bf16"}
TOLERANCE = 1e-4


class OpenVinoBackbone:
    """A backbone whose forward passes OpenVINO computes.

    The network is traced once for a shape of the batch and a set of layers, all of which come out of one pass. It is
    traced on black images, and in float32 the first batch is also run by torch: a network that a trace cannot hold
    (its path depends on the image's values) or that OpenVINO computes otherwise is an error and not a wrong feature.

    Args:
        backbone: The torch network, on the CPU.
        dtype: "float32" or "bfloat16".
        threads: CPU threads of a forward pass.

    Attributes:
        engine: "openvino" with its version.
        architecture: The network's, with engine and type; so both are part of the key under which features are kept.

    Raises:
        ModuleNotFoundError: OpenVINO is not installed.
        ValueError: The backbone is no torch network, or the type is unknown.
    """

    def __init__(self, backbone: object, dtype: str = "float32", threads: int = 1) -> None:
        if not isinstance(backbone, ModuleBackbone):
            raise ValueError(
                f"extraction.engine=openvino runs networks of torch modules, got {type(backbone).__name__}; "
                "use extraction.engine=torch"
            )
        if dtype not in PRECISIONS:
            raise ValueError(f"dtype must be one of {sorted(PRECISIONS)} with engine=openvino, got {dtype!r}")
        try:
            import openvino
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "extraction.engine=openvino needs OpenVINO: pip install 'humanlike[openvino]', or use "
                "extraction.engine=torch"
            ) from error
        self.engine = f"openvino {openvino.__version__}"
        self.name = backbone.name
        self.architecture = f"{backbone.architecture}, {self.engine}, {dtype}"
        self.transform = backbone.transform
        self.default_layer = backbone.default_layer
        self.backbone = backbone
        self.dtype = dtype
        self.threads = threads
        self._requests: dict[tuple[Any, ...], Any] = {}

    @property
    def layers(self) -> tuple[str, ...]:
        """The network's layers."""
        return self.backbone.layers

    @property
    def weights_hash(self) -> str:
        """The network's digest."""
        return self.backbone.weights_hash

    def features(self, x_B3HW: torch.Tensor, layers: Sequence[str]) -> dict[str, torch.Tensor]:
        """Activations of `layers` from one forward pass, (B, D) float32.

        Raises:
            ValueError: A layer is unknown, the network cannot be traced, or the CPU lacks the type.
        """
        key = (tuple(x_B3HW.shape), tuple(layers))
        if key not in self._requests:
            self._requests[key] = self._compile(x_B3HW, layers)
            found = self._infer(self._requests[key], x_B3HW, layers)
            self._compare(found, x_B3HW, layers)
            return found
        return self._infer(self._requests[key], x_B3HW, layers)

    def _infer(self, request: Any, x_B3HW: torch.Tensor, layers: Sequence[str]) -> dict[str, torch.Tensor]:
        request.infer({0: x_B3HW.contiguous().numpy()})
        # Copies, because the next pass writes into the same memory.
        return {
            layer: torch.from_numpy(request.get_output_tensor(i).data.astype("float32"))
            for i, layer in enumerate(layers)
        }

    def _compile(self, x_B3HW: torch.Tensor, layers: Sequence[str]) -> Any:
        import openvino
        from openvino.frontend import FrontEndManager
        from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder

        black_B3HW = torch.zeros(x_B3HW.shape)
        # Fixed shapes make what the tracer warns of, sizes that become constants, true.
        with warnings.catch_warnings(), fixed_arithmetic("cpu", "float32", self.threads):
            warnings.simplefilter("ignore")
            try:
                traced = torch.jit.trace(_Outputs(self.backbone, layers), black_B3HW, check_trace=False)
                # The front end itself, because openvino.convert_model reports its use over the network.
                front_end = FrontEndManager().load_by_framework("pytorch")
                # The decoder has a name because the model reads from it, and it must outlive the conversion.
                decoder = TorchScriptPythonDecoder(traced, example_input=(black_B3HW,))
                model = front_end.convert(front_end.load(decoder))
            except RuntimeError as error:
                raise ValueError(
                    f"{self.name}: OpenVINO cannot take over this network ({error}); use extraction.engine=torch"
                ) from error
        model.reshape(openvino.PartialShape(list(black_B3HW.shape)))
        precision = PRECISIONS[self.dtype]
        settings = {
            "INFERENCE_PRECISION_HINT": precision,
            "INFERENCE_NUM_THREADS": self.threads,
            "NUM_STREAMS": 1,
        }
        compiled = openvino.Core().compile_model(model, "CPU", settings)
        used = compiled.get_property("INFERENCE_PRECISION_HINT").to_string()
        if used != precision:
            raise ValueError(f"OpenVINO computes in {used} on this CPU instead of {precision}; use dtype=float32")
        return compiled.create_infer_request()

    def _compare(self, found: Mapping[str, torch.Tensor], x_B3HW: torch.Tensor, layers: Sequence[str]) -> None:
        if self.dtype != "float32":
            return
        with fixed_arithmetic("cpu", "float32", self.threads):
            reference = self.backbone.features(x_B3HW, layers)
        for layer, expected_BD in reference.items():
            scale = float(expected_BD.norm())
            error = float((found[layer] - expected_BD).norm())
            if not error <= TOLERANCE * scale:
                raise ValueError(
                    f"{self.name}: OpenVINO's features of layer {layer!r} are {error / max(scale, 1e-30):.1e} from "
                    f"torch's, more than {TOLERANCE:g}; use extraction.engine=torch"
                )


class _Outputs(nn.Module):
    """A network as a function from images to a tuple of its layers, for tracing."""

    def __init__(self, backbone: ModuleBackbone, layers: Sequence[str]) -> None:
        super().__init__()
        self.network = backbone.network
        self._layers = tuple(layers)
        self._features = backbone.features

    def forward(self, x_B3HW: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = self._features(x_B3HW, self._layers)
        return tuple(found[layer] for layer in self._layers)
