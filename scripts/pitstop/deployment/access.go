package deployment

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"
	"google.golang.org/api/cloudresourcemanager/v1"
	"google.golang.org/api/iam/v1"
	"google.golang.org/api/option"
	"google.golang.org/api/storage/v1"

	"pitstop.internal/scripts/pitstop/google"
)

// PermissionTester tells which of some permissions an account has, by asking as that account.
type PermissionTester interface {
	OnProject(ctx context.Context, account, project string, permissions []string) (has []string, err error)
	OnBucket(ctx context.Context, account, bucket string, permissions []string) (has []string, err error)
	OnAccount(ctx context.Context, account, other string, permissions []string) (has []string, err error)
}

// IAM asks Google. The caller needs roles/iam.serviceAccountTokenCreator on the account. If opts are set, they take the place of
// impersonation.
type IAM struct {
	Opts   []option.ClientOption
	google *google.Connection
}

// as are the options of a client that asks as an account.
func (a IAM) as(account string) ([]option.ClientOption, error) {
	if a.Opts != nil {
		return a.Opts, nil
	}
	t, err := a.google.Impersonate(account)
	if err != nil {
		return nil, err
	}
	return []option.ClientOption{option.WithHTTPClient(&http.Client{Transport: t})}, nil
}

// OnProject implements PermissionTester.
func (a IAM) OnProject(ctx context.Context, account, project string, permissions []string) ([]string, error) {
	opts, err := a.as(account)
	if err != nil {
		return nil, err
	}
	svc, err := cloudresourcemanager.NewService(ctx, opts...)
	if err != nil {
		return nil, err
	}
	answer, err := svc.Projects.TestIamPermissions(project,
		&cloudresourcemanager.TestIamPermissionsRequest{Permissions: permissions}).Context(ctx).Do()
	if err != nil {
		return nil, google.ShortError(err)
	}
	return answer.Permissions, nil
}

// OnBucket implements PermissionTester.
func (a IAM) OnBucket(ctx context.Context, account, bucket string, permissions []string) ([]string, error) {
	opts, err := a.as(account)
	if err != nil {
		return nil, err
	}
	svc, err := storage.NewService(ctx, opts...)
	if err != nil {
		return nil, err
	}
	answer, err := svc.Buckets.TestIamPermissions(bucket, permissions).Context(ctx).Do()
	if err != nil {
		return nil, google.ShortError(err)
	}
	return answer.Permissions, nil
}

// OnAccount implements PermissionTester.
func (a IAM) OnAccount(ctx context.Context, account, other string, permissions []string) ([]string, error) {
	opts, err := a.as(account)
	if err != nil {
		return nil, err
	}
	svc, err := iam.NewService(ctx, opts...)
	if err != nil {
		return nil, err
	}
	answer, err := svc.Projects.ServiceAccounts.TestIamPermissions("projects/-/serviceAccounts/"+other,
		&iam.TestIamPermissionsRequest{Permissions: permissions}).Context(ctx).Do()
	if err != nil {
		return nil, google.ShortError(err)
	}
	return answer.Permissions, nil
}

// Grant is a permission that the account of a function needs; see terraform/permissions.json.
type Grant struct {
	Account    string   `json:"account"`
	Permission string   `json:"permission"`
	On         string   `json:"on"`
	Role       string   `json:"role"`
	Switches   []string `json:"switches"`
}

// ReadGrants reads the table of permissions from the repository around the current folder.
func ReadGrants() ([]Grant, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for {
		raw, err := os.ReadFile(filepath.Join(dir, "terraform", "permissions.json"))
		if err == nil {
			var all []Grant
			return all, json.Unmarshal(raw, &all)
		}
		up := filepath.Dir(dir)
		if up == dir {
			return nil, errors.New("terraform/permissions.json is not in this folder or above it; call this in Pitstop's repository")
		}
		dir = up
	}
}

// NeededPermissions are the permissions that an account needs on a kind of resource under these switches, in order.
func NeededPermissions(all []Grant, account, on string, allowed []string) (permissions []string) {
	for _, g := range all {
		wanted := len(g.Switches) == 0 || slices.ContainsFunc(g.Switches, func(s string) bool { return slices.Contains(allowed, s) })
		if g.Account == account && g.On == on && wanted && !slices.Contains(permissions, g.Permission) {
			permissions = append(permissions, g.Permission)
		}
	}
	return permissions
}
