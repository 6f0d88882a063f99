from typing_extensions import Buffer

def read_head(
    data: Buffer,
) -> tuple[int, int, bool, bool, bool, int, int, int, int, int, int, int, int, bool] | None: ...
