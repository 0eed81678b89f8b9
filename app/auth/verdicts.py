"""Why a token does not admit its bearer: it is bad, or nobody can say now. Their texts are for our log only."""


class BadToken(Exception):
    """Its bearer is told nothing but that; `cause` is a constant."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


class CannotVerify(Exception):
    """Whoever knows could not be asked. To refuse the token as bad would make its client throw its login away."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after
